"""Describes a database's schema exactly, so that two of them can be compared."""

import re

from sqlalchemy import Connection, text

Schema = dict[str, object]

POSTGRES_COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated,
       pg_get_expr(d.adbin, d.adrelid)
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid AND c.relkind = 'r'
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
"""
POSTGRES_CONSTRAINTS = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
FROM pg_constraint WHERE connamespace = 'public'::regnamespace
"""
POSTGRES_INDEXES = """
SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
"""


def schema_of(conn: Connection) -> Schema:
    """Return every object of the schema by its name, in a form that equal objects share."""
    return _sqlite(conn) if conn.dialect.name == "sqlite" else _postgres(conn)


def _sqlite(conn: Connection) -> Schema:
    found = conn.execute(text("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    return {
        f"{kind} {name}": _parts(sql) if kind == "table" else _plain(sql)
        for kind, name, sql in found
        if name not in ("alembic_version", "sqlite_sequence")
    }


def _plain(sql: str) -> str:
    return " ".join(sql.replace('"', "").split())


def _parts(sql: str) -> list[str]:
    """Return the columns and constraints of a table in an order of their own."""
    head, body = _plain(sql).split("(", 1)
    depth, parts = 0, [""]
    for character in body[: body.rindex(")")]:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [head.strip(), *sorted(part.strip() for part in parts)]


def _postgres(conn: Connection) -> Schema:
    schema: Schema = {}
    for kind, query in (
        ("column", POSTGRES_COLUMNS),
        ("constraint", POSTGRES_CONSTRAINTS),
        ("index", POSTGRES_INDEXES),
    ):
        for table, name, *definition in conn.execute(text(query)):
            if table != "alembic_version":
                schema[f"{kind} {table}.{name}"] = definition
    return schema


def names(schema: Schema, pattern: str) -> list[str]:
    """Return the names of a schema's objects that match a pattern."""
    return sorted(name for name in schema if re.fullmatch(pattern, name))
