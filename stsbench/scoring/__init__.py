"""Vectors to scores: the STS protocols."""
