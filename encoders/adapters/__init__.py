"""Models of other suites (HEAR, X-ARES, mteb) and users' classes as models of this package, and the reverse.

To add a suite, add a file whose `ADAPTER` states the prefix of its models' names.
"""
