"""stsbench: measure sentence embeddings, explain them, and prove the numbers."""
