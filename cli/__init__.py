"""The command line: one file per command, which reads its arguments and calls the packages below.

A new command is a new file with a ``COMMAND``. Computing, drawing and formatting belong to the packages below.
"""
