"""Your own function against the archive: verdicts, and the smallest input that it gets wrong."""
