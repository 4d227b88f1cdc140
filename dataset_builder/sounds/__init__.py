"""Recordings that a user brings: what the recipes know of them, and which are drawn. Readers of them stand here too."""
