"""How models are run: what they give is computed once, kept in a store, scored by tasks and written as results.

No score is defined here, and nothing is compared.
"""
