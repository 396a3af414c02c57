"""A DataFrame as a table: for the terminal, in Markdown, LaTeX, CSV or JSON; verdicts for CI services."""
