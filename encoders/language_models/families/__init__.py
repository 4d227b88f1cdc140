"""One file a family of models that hear and answer: its declaration (`FAMILY`) and its front end.

A new family is a new file; `listing.LanguageFamily` says what it declares. It imports torch and transformers inside
functions.
"""
