"""The control plane's SQL, one subject per file."""
