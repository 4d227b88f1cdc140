"""The benchmarks, a file each: the common question of a benchmark's tasks, and the figures that show several."""
