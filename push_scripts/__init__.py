"""Publish the data set, the metrics and the leaderboard, and submit results.

How the Hub is called belongs to `hub`, what the leaderboard does to `leaderboard`, and the command line to `cli`.
"""
