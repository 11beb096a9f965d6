"""Is the paper right? Problems x schedulers x seeds fanned out over Spark, and the papers' claims re-computed."""
