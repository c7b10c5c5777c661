"""The database contract between the planes, as data."""
