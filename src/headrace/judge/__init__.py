"""How good is a plan, and how far from the best possible? Independent of every algorithm."""
