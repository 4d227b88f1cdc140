"""The leaderboard: entries of the results repository, checks of submissions, the page."""
