"""The verbs of the public API: load what is needed, call the rooms, save."""
