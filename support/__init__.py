"""Tools for all other packages: errors, text, files, the cache folder.

Nothing here imports another package of the project or knows about clips, scores or models.
"""
