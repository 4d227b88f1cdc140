"""Submissions and their verification: the files sent to a leaderboard, and their recomputation by anybody.

These files, the rules for their content, and the checker's record belong here. Nothing here calls the Hub.
"""
