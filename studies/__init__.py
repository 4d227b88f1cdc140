"""Studies of the scores themselves: are they valid, and are they an artefact of synthetic sound?

What evaluates a model for its own sake belongs to the evaluator; nothing here is shipped to the leaderboard.
"""
