"""A case as documents and byte-reproducible bundles."""
