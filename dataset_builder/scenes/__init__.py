"""Scenes of synthetic sources and their sound; which rows a data set is made of is for the recipes to say."""
