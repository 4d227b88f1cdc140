"""The tasks, a file each: which recipe, which kind of model, which metric, and what every number of it means.

Nothing here reads a data set, runs a model or writes a file.
"""
