"""Figures of a comparison, in one style, for print and for the report. What is drawn comes from ``compare/``."""
