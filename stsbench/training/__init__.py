"""Recipe to checkpoint: views, heads, negatives and objective terms that a recipe composes, and the loop."""
