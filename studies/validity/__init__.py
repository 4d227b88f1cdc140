"""Are the scores right about encoders with a known truth? Encoders made from metadata, theory, simulated statistics.

Nothing about trained models belongs here.
"""
