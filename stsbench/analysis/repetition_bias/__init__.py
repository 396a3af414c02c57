"""Written below."""
