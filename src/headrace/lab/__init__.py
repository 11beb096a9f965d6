"""Is the paper right? Many problems and schedulers compared, and the papers' claims re-computed."""
