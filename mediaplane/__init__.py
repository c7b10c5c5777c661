"""What both planes of mediaplane agreed on; imports neither."""

__version__ = "0.1.0"
