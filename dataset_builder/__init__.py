"""Data: recipes, their sounds, and data that are rendered, built and read.

Embeddings and scores are made in other packages.
"""
