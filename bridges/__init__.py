"""Tasks and models inside other suites: mteb, inspect_ai, lmms-eval.

A bridge asks with a task's own inputs and scores with its own score function; what a suite lacks, such as controls,
goes in as its parameters. Nothing is computed here that another package computes.
"""
