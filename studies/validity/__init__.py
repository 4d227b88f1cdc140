"""Are the scores right about encoders whose truth is known? Encoders made from metadata, theory, simulated statistics.

What is about trained models does not belong here.
"""
