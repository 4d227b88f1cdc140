"""One file a model family: its class, its listings (`MODELS`), its transformers architectures (`ARCHITECTURES`).

A family of audio language models has its declaration (`FAMILY`, a `LanguageFamily`) and its front end there.

A new family is a new file. It imports torch and transformers inside functions; networks of our own go to `networks`.
"""
