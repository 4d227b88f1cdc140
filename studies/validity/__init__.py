"""Validation of the scores on encoders with a known truth: encoders made from metadata, theory, simulated statistics.

Trained models are evaluated elsewhere.
"""
