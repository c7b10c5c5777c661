"""Decoders of pictures and videos, each in a process that may crash, hang or be attacked."""
