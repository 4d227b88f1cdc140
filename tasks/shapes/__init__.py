"""Shapes of tasks: the common part of tasks that put one question to different rows.

A registered task takes a shape and adds its own facts.
"""
