"""Models that hear and answer in words: how they are run by transformers, and asked over a network.

What is asked, and how an answer is read, does not belong here.
"""
