"""What PostgreSQL itself can say of its tables: indexes that hold, rows that name each other, pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import Connection, sql

_ONCE = ("artifact_once",)  # a step is accepted once in a run: by the database, not by code
_INDEXES = """
SELECT c.relname, i.indisunique AND i.indisvalid, c.oid, a.amname = 'btree' AND c.relkind = 'i'
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
WHERE c.relnamespace = to_regnamespace(%s) ORDER BY c.relname
"""
_KEYS = """
SELECT conrelid::regclass::text, a.attname, confrelid::regclass::text, b.attname
FROM pg_constraint k
JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = conkey[1]
JOIN pg_attribute b ON b.attrelid = confrelid AND b.attnum = confkey[1]
WHERE contype = 'f' AND connamespace = to_regnamespace(%s) AND cardinality(conkey) = 1
"""
_AMCHECK = """
SELECT nspname FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'amcheck'
"""


def table_flaws(connection: Connection[Any], schema: str) -> Iterator[str]:
    """Everything that is wrong, one line each; the connection is in no transaction."""
    named = f'"{schema}"'
    indexes = connection.execute(_INDEXES, (named,)).fetchall()
    valid = {name for name, fine, *_ in indexes if fine}
    for name in _ONCE:
        if name not in valid:
            yield f"database: its unique index '{name}' is missing or not valid"
    for table, column, other, key in connection.execute(_KEYS, (named,)).fetchall():
        query = sql.SQL(
            "SELECT count(*) FROM {} x WHERE {} IS NOT NULL"
            " AND NOT EXISTS (SELECT FROM {} y WHERE y.{} = x.{})"
        ).format(
            sql.Identifier(schema, table),
            sql.Identifier("x", column),
            sql.Identifier(schema, other),
            sql.Identifier(key),
            sql.Identifier(column),
        )
        ((lost,),) = connection.execute(query).fetchall()
        if lost:
            yield f"database: {lost} rows of '{table}' name missing rows of '{other}'"
    for (place,) in connection.execute(_AMCHECK).fetchall():
        yield from _pages(
            connection, place, [(n, oid) for n, _, oid, is_tree in indexes if is_tree]
        )


def _pages(
    connection: Connection[Any], place: str, indexes: list[tuple[str, int]]
) -> Iterator[str]:
    """What amcheck finds, where the administrator installed it and lets this role use it."""
    query = sql.SQL("SELECT {}(%s::oid::regclass)").format(sql.Identifier(place, "bt_index_check"))
    for name, oid in indexes:
        try:
            connection.execute(query, (oid,))
        except psycopg.errors.InsufficientPrivilege:
            return
        except psycopg.errors.InternalError as error:  # index_corrupted, data_corrupted
            yield f"database: index '{name}': {error.diag.message_primary}"
