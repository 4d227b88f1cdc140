"""Mixtures: events on a time line and their sound; recipes decide which rows exist."""
