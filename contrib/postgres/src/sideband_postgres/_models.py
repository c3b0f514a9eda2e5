"""The configuration of the store."""

from __future__ import annotations

from typing import Annotated

import psycopg
from psycopg.conninfo import conninfo_to_dict
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

_Seconds = Annotated[float, Field(gt=0, le=3_600)]


def _check_address(address: SecretStr) -> SecretStr:
    try:
        conninfo_to_dict(address.get_secret_value())
    except psycopg.Error:  # its text may contain the password
        raise ValueError("expected a URL such as postgresql://user@host/database, or `host=… dbname=…`") from None
    return address


class Config(BaseModel):
    """The table ``[plugins.postgres]``.

    Attributes:
        address: the database, as a URL ``postgresql://user@host:5432/database`` or in the form ``host=… dbname=…`` of
            libpq. What it does not name comes from the variables of libpq, such as ``PGHOST`` and ``PGPASSFILE``.
        schema_name: the schema for the tables, ``schema`` in the table. Hosts with the same schema share a store.
        max_connections: the maximum number of connections of a host, which all its sessions share, besides one for the
            liveness of its locks.
        statement_seconds: the time limit of a statement, in seconds.
        wait_seconds: how long an operation waits for a free connection, and for a server that cannot be reached, before
            it fails, in seconds.
        lost_seconds: after how many seconds without an answer from the machine of a host the server ends its
            connections, and with them its locks.
        grace_seconds: how long a host without any connection keeps its locks if another one wants them, in seconds, so
            that all hosts can connect again after a restart of the server.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True, hide_input_in_errors=True)

    address: Annotated[SecretStr, AfterValidator(_check_address)] = SecretStr("")
    schema_name: Annotated[str, Field(alias="schema", pattern=r"^[a-z_][a-z0-9_]{0,47}$")] = "sideband"
    max_connections: Annotated[int, Field(ge=1, le=1_000)] = 10
    statement_seconds: _Seconds = 15.0
    wait_seconds: _Seconds = 15.0
    lost_seconds: Annotated[int, Field(ge=1, le=3_600)] = 20
    grace_seconds: Annotated[float, Field(ge=0, le=60)] = 2.0
