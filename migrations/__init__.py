"""The database schema's history, up and down, on SQLite and PostgreSQL."""
