"""Tasks and models inside other suites: mteb, inspect_ai, lmms-eval."""
