"""Text to matrix: what can encode sentences, and the planner and the cache that make it cheap."""
