"""What a result is, and its files. No computing of scores, no tables, no comparison."""
