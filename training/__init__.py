"""Training: the losses, their data, the loop. Tasks, recipes and metrics do not belong here: the packages below score
models."""
