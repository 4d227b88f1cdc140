"""Loading of models by name: listings, checkpoints, weights and downloads. No model family belongs here."""
