"""Results and their files. No computing of scores, no tables, no comparison."""
