"""Models in the form of other people: HEAR, X-ARES, mteb, and classes of one's own; and ours in the form of theirs.

A new form is a new file, whose `ADAPTER` says with which prefix names of it begin.
"""
