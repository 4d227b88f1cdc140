"""The leaderboard: entries of the results repository, checks of submissions, the page.

What a submission must be, and how it is recomputed, belongs to `evaluator`; calls to the Hub belong to `hub`.
"""
