"""Studies of the scores themselves, their tables and their sounds, run in a clone: ``python -m studies.NAME``.

Nothing here is installed, and no other package imports it. Code that evaluates a model for its own sake belongs to the
evaluator.
"""
