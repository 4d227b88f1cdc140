"""Publish the data set, the metrics and the leaderboard, and submit results.

Calls to the Hub belong to `hub`, the page of the leaderboard to `leaderboard`, and the command line to `cli`.
"""
