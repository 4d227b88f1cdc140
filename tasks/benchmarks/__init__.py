"""The benchmarks, a file each: what the tasks of one ask together, and the figures that show several of them."""
