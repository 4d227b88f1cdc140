"""The command line: one file a command, which reads its arguments and calls the rooms below.

A new command is a new file with a ``COMMAND``. What computes, draws or formats belongs to the rooms below.
"""
