"""Reports: results in, strings out."""
