"""Looks at an installation without changing anything, whether its planes run or not."""
