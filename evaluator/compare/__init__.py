"""Comparison of results: aligned by sample, with intervals, tests and fits; and the tables made of them.

Pictures of a comparison are in ``figures/``, the page about it in ``report/``.
"""
