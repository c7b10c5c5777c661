"""The rules, one subject per file."""
