"""What people are shown: `Table` and `Result`, the formats, figures, sections of reports, verdicts for CI."""
