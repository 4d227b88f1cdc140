"""Audio language models, run by transformers or by a server.

Questions, and the parsing of answers, do not belong here.
"""
