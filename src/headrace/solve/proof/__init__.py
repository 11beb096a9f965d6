"""The least traffic between nodes and the fewest nodes, proven, and bounds on them."""
