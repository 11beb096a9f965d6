"""Keep it so: observe, judge, decide, move."""
