"""The configuration of the store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from ._address import address_of

_Seconds = Annotated[float, Field(gt=0, le=3_600)]


def _check_address(address: SecretStr) -> SecretStr:
    address_of(address.get_secret_value())
    return address


class Config(BaseModel):
    """The table ``[plugins.redis]``.

    Attributes:
        address: the server, as ``redis://user@host:6379/0``, ``rediss://`` for TLS, or ``unix:///path/of/socket``.
        password: the password, unless the address contains it.
        prefix: the beginning of all keys. Hosts with the same prefix share a store.
        ca_file: certificates of authorities for TLS, which replace those of the system.
        max_connections: the maximum number of connections of a host, which all its sessions share, besides one for the
            liveness of its locks.
        command_seconds: the time limit of a command, in seconds.
        wait_seconds: how long an operation waits for a free connection, for the transaction of another host, and for a
            server that cannot be reached, before it fails, in seconds.
        transaction_seconds: after how many seconds without an operation a transaction ends, so that others can write.
        lost_seconds: after how many seconds without a sign of life another host may take the locks of a host.
        grace_seconds: how long a host keeps its locks after that, while another one wants them, in seconds, so that all
            hosts can connect again after a restart of the server.
        replicas: how many replicas must have each write, at least in memory, when it returns.
        failover_may_lose_writes: accept a server with replicas, although a failover may lose writes.
        trust_server: accept a server whose settings cannot be read, as those of some providers.
        publish: publish what happens in this host, which ``sideband events`` prints on any machine.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    address: Annotated[SecretStr, AfterValidator(_check_address)] = SecretStr("redis://127.0.0.1:6379/0")
    password: SecretStr = SecretStr("")
    prefix: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_.-]{1,100}$")] = "sideband"
    ca_file: Path | None = None
    max_connections: Annotated[int, Field(ge=1, le=1_000)] = 10
    command_seconds: _Seconds = 15.0
    wait_seconds: _Seconds = 15.0
    transaction_seconds: _Seconds = 5.0
    lost_seconds: _Seconds = 20.0
    grace_seconds: Annotated[float, Field(ge=0, le=60)] = 2.0
    replicas: Annotated[int, Field(ge=0, le=100)] = 0
    failover_may_lose_writes: bool = False
    trust_server: bool = False
    publish: bool = False
