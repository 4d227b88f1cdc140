"""Submissions and their verification: what is sent to a leaderboard, and how anybody recomputes it.

Files, what they may hold, and the checker's record belong here. Nothing here calls the Hub.
"""
