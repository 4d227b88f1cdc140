"""From a name to a model: listings, checkpoints, weights and downloads. No model family belongs here."""
