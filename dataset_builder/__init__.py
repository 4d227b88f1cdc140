"""The data: recipes, the sound that they are made of, and data that are rendered, built and read.

Embeddings and scores of them are made in other rooms.
"""
