"""Steps that several schedulers share: each has one home here. The schedulers lie one folder up."""
