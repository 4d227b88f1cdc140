"""Kinds of models that can be trained, a file each. What the loop needs of them is in `model`."""
