"""Model runs: outputs are computed once, kept in a store, scored by tasks and written as results.

No score is defined here, and nothing is compared.
"""
