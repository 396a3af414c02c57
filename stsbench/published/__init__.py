"""Numbers from papers as data with their source, known checkpoints, and what does not add up in them."""
