"""Model runs: outputs are computed once, cached, scored by tasks and written as results.

Scores are defined in ``metrics/`` and compared in ``evaluator/compare``.
"""
