"""Is a case what it claims to be? Verified by running it."""
