"""Models of other suites (HEAR, X-ARES, mteb) and users' classes as ours, and ours as models of other suites.

A new form is a new file, whose `ADAPTER` states the prefix of its names.
"""
