"""Figures of a comparison, in one style, for print and for the report. Their numbers come from ``compare/``."""
