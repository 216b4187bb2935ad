"""Running programs against fixtures, in confined child processes."""
