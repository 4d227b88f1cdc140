"""The leaderboard: entries of the results repository, checks of submissions, the page.

The rules for submissions and their recomputation belong to `evaluator`; calls to the Hub belong to `hub`.
"""
