"""What is behind a score: arrays and pair tables in, tidy DataFrames and figures out."""
