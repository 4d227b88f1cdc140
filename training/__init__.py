"""Training: the losses, their data, the loop. What a task or a recipe is does not belong here, nor does what is
measured: models are scored by the rooms below."""
