"""Every task of questions as a task of lmms-eval: a folder for ``--include_path``, and what its files call."""
