"""From a model and a task to results, comparisons, reports and submissions. No task's name stands here."""
