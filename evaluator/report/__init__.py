"""The report: one HTML file about comparisons, with tables, figures and clips to listen to.

Its content comes from ``compare/`` and ``figures/``; this folder puts it on a page.
"""
