"""How many tasks on which machines: for the largest rate, the least cost, within a budget."""
