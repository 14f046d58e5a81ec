"""Task families: pure generators from (rng, level) to a task."""
