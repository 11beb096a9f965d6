"""Little traffic between nodes, on counts of tasks per class and node."""
