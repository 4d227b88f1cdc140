"""Audio models: their base class, their families, and how they are loaded, run and checked.

Nothing here knows a task, a metric or a data set. Importing a module of this folder, or of `families`, imports neither
torch nor transformers; that happens where a model is loaded.
"""
