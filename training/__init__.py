"""Training: the losses, their data, the loop. Tasks, recipes and metrics do not belong here: models are scored by the
rooms below."""
