"""Proof: is a number right, is a difference real, and if a number is off, why."""
