"""What a plan does over time: tuple by tuple, or as a fluid."""
