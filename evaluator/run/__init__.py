"""Model runs: outputs are computed once, cached, scored by tasks and written as results.

No score is defined here, and nothing is compared.
"""
