"""Decides: admits, schedules and recovers work, answers queries and holds every policy."""
