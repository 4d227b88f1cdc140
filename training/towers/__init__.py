"""Kinds of models that can be trained, one file each. `model` defines what the loop needs of them."""
