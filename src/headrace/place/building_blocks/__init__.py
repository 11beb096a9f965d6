"""Steps that several schedulers share, one file each; the schedulers are one folder up."""
