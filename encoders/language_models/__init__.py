"""Audio language models, run by transformers or asked over a network.

Questions, and the reading of answers, do not belong here.
"""
