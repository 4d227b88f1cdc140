"""Publish the data set, the metrics and the leaderboard; submit results."""
