"""Tools for every room: errors, text, files, the cache folder.

Nothing here imports another part of the project or knows clips, scores or models.
"""
