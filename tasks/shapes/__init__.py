"""Shapes of tasks: shared base classes of tasks that ask the same question of different rows.

A registered task uses a shape and adds its own facts.
"""
