"""What the benchmarks are: the catalogue, finding, fetching, verifying and reading; the bundled sample."""
