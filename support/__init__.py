"""What every room needs and what belongs to none: errors, text, files, the cache folder.

Nothing here imports another part of the project, and nothing here knows what a clip, a score or a model is.
"""
