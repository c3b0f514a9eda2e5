"""The tables, their migrations, and the settings of each connection."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, LiteralString

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from ._connection import PostgresConnection
from ._errors import PostgresUnsupported
from ._models import Config

# Each brings the tables from one version to the next. A released one is never changed.
_MIGRATIONS = (
    """
    CREATE TABLE documents (
        key text COLLATE "C" PRIMARY KEY,
        version bigint NOT NULL,
        value text NOT NULL
    );
    CREATE TABLE streams (
        name text COLLATE "C" PRIMARY KEY,
        length bigint NOT NULL
    );
    CREATE TABLE records (
        stream text COLLATE "C" NOT NULL,
        position bigint NOT NULL,
        value text NOT NULL,
        PRIMARY KEY (stream, position)
    );
    CREATE TABLE holders (
        id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        opened timestamptz NOT NULL DEFAULT now()
    );
    CREATE TABLE locks (
        name text COLLATE "C" PRIMARY KEY,
        holder integer NOT NULL REFERENCES holders (id) ON DELETE CASCADE
    );
    CREATE INDEX ON locks (holder);
    """,
    "ALTER TABLE locks ADD COLUMN attempt bigint NOT NULL DEFAULT 0",
)
VERSION = len(_MIGRATIONS)


async def prepare(connection: PostgresConnection, config: Config) -> None:
    """Set what each connection needs: the schema, time limits, and the detection of machines that do not answer."""
    milliseconds = int(config.statement_seconds * 1_000)
    settings = {
        "search_path": config.schema_name,
        "statement_timeout": milliseconds,
        # Another host would wait for the locks of a process that is stopped inside a transaction.
        "idle_in_transaction_session_timeout": 2 * milliseconds,
        "tcp_keepalives_idle": max(1, config.lost_seconds // 2),
        "tcp_keepalives_interval": max(1, config.lost_seconds // 6),
        "tcp_keepalives_count": 3,
        "tcp_user_timeout": config.lost_seconds * 1_000,
    }
    pairs = [SQL("SET {} = {}").format(Identifier(name), Literal(value)) for name, value in settings.items()]
    # Everything that is written is on disk when its statement returns: a host goes on when the server crashes.
    raised = SQL(
        "SELECT set_config('synchronous_commit', 'on', false) "
        "WHERE current_setting('synchronous_commit') IN ('off', 'local')"
    )
    await connection.execute(SQL("; ").join([*pairs, raised]))


async def migrate(connection: PostgresConnection, schema: str) -> None:
    """Create the tables, or bring them to the current version. Hosts that do so at the same time wait for each other.

    Raises:
        PostgresUnsupported: if they have a newer version, or the database is not in UTF-8.
    """
    encoding = await _one(connection, "SELECT current_setting('server_encoding')")
    if encoding != "UTF8":
        raise PostgresUnsupported(f"the database is in {encoding}", hint="create it with the encoding UTF8")
    if await _version(connection, schema) == VERSION:
        return
    # Not inside the transaction: one that waits would not see the tables that were created meanwhile.
    await connection.execute("SELECT pg_advisory_lock(hashtext('sideband'), hashtext(%s))", [schema])
    try:
        async with connection.transaction():
            await _migrate(connection, schema)
    finally:
        # If this does not happen, the end of the connection releases it.
        with suppress(psycopg.Error):
            await connection.execute("SELECT pg_advisory_unlock(hashtext('sideband'), hashtext(%s))", [schema])


async def _migrate(connection: PostgresConnection, schema: str) -> None:
    found = await _version(connection, schema)
    if found > VERSION:
        raise PostgresUnsupported(
            f"its tables have version {found}, but this version of sideband-postgres supports version {VERSION}",
            hint="upgrade sideband-postgres on this machine, or use another `schema`",
        )
    if found == 0:
        if await _one(connection, "SELECT to_regnamespace(%s)", schema) is None:
            await connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(schema)))
        await connection.execute("CREATE TABLE format (version integer NOT NULL)")
        await connection.execute("INSERT INTO format VALUES (0)")
    for statements in _MIGRATIONS[found:]:
        await connection.execute(statements)
    await connection.execute("UPDATE format SET version = %s", [VERSION])


async def namespace_of(connection: PostgresConnection, schema: str) -> int:
    """Return the number that distinguishes the advisory locks of this schema from others."""
    return int(await _one(connection, "SELECT hashtext(%s)", schema))


async def _version(connection: PostgresConnection, schema: str) -> int:
    if await _one(connection, "SELECT to_regclass(%s)", f'"{schema}".format') is None:
        return 0
    return int(await _one(connection, "SELECT version FROM format"))


async def _one(connection: PostgresConnection, query: LiteralString, *arguments: object) -> Any:
    row = await (await connection.execute(query, arguments)).fetchone()
    return None if row is None else row[0]
