"""Stand-alone programs: a case's sources and fixtures as one file, and such a file in parts."""
