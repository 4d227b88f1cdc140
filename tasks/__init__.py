"""The tasks, a file each: recipe, kind of model, metric, and the meaning of every number.

Nothing here reads a data set, runs a model or writes a file.
"""
