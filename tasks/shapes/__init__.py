"""Shapes of tasks: what those have in common that put the same question to other rows.

A registered task takes a shape and says what is its own.
"""
