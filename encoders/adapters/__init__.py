"""Models of other suites (HEAR, X-ARES, mteb) and users' classes as models of this package, and the reverse.

A new form is a new file, whose `ADAPTER` states the prefix of its names.
"""
