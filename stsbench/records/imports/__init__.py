"""Results of other evaluation programs as records: what their files say, and nothing that they do not."""
