"""One file per model family: its class, its listings (`MODELS`), its transformers architectures (`ARCHITECTURES`).

The file of a family of audio language models holds its declaration (`FAMILY`, a `LanguageFamily`) and its front end.

A new family is a new file. It imports torch and transformers inside functions; networks of this package go to
`networks`.
"""
