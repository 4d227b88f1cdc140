"""The data: recipes, the sound that they are made of, and data that are rendered, built and read.

What a model makes of them, and what that is worth, is said in other rooms.
"""
