"""The least traffic between nodes, proven, and bounds on it."""
