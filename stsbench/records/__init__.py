"""The run record, its pair table and its signature: what is kept of a measurement."""
