"""High rates and short batches, on counts of tasks per class and node."""
