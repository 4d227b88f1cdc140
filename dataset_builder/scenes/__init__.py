"""Mixtures: events on a time line and their sound; the recipes decide which rows there are."""
