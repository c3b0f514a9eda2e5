"""What the server must be: one that keeps what it has confirmed. It is asked on each connection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ._connection import RedisConnection
from ._errors import NO_LOG, RedisUnsupported, RedisUnwritable, ServerError, store_error
from ._models import Config

_OLDEST = (7, 0)
_SECTIONS = ("server", "replication", "persistence")
# The fsync of each write must not be left out, also not while the log is rewritten.
_REQUIRED = {
    "appendonly": "yes",
    "appendfsync": "always",
    "no-appendfsync-on-rewrite": "no",
    "cluster-enabled": "no",
}


async def check_server(connection: RedisConnection, config: Config, *, is_new: bool = False) -> None:
    """Check the version, the role and the settings of the server.

    Args:
        connection: a connection.
        config: what is accepted.
        is_new: whether the connection is new. The log is not checked later, since its first rewrite looks the same if
            the server has had one from the beginning.

    Raises:
        RedisUnsupported: if it may lose what it has confirmed, or is too old.
        RedisUnwritable: if it is a replica.
        ServerError: if it is starting, or still creates its log.
    """
    commands = [*(("INFO", one) for one in _SECTIONS), ("CONFIG", "GET", *_REQUIRED, "maxmemory*")]
    *sections, settings = await connection.exchange(*commands)
    found: dict[str, str] = {}
    for answer in sections:
        if not isinstance(answer, ServerError):
            found |= dict(re.findall(r"^(\w+):(.*?)\r?$", answer.decode(errors="replace"), re.MULTILINE))
        elif answer.is_temporary:
            raise answer
        elif not config.trust_server:
            raise store_error(answer)
    _check_version(found)
    _check_replication(found, config)
    if not config.trust_server:
        _check_settings(settings)
        if is_new:
            _check_log(found)


def _check_version(found: Mapping[str, str]) -> None:
    text = found.get("redis_version", "7.0")
    major, minor, *_ = (*map(int, re.findall(r"\d+", text)), 0, 0)
    if (major, minor) < _OLDEST:
        raise RedisUnsupported(f"the server has version {text}", hint="use Redis 7.0 or Valkey 7.2, or later")


def _check_replication(found: Mapping[str, str], config: Config) -> None:
    if found.get("role", "master") != "master":
        raise RedisUnwritable(
            f"the server is a replica of {found.get('master_host')}:{found.get('master_port')}",
            hint="name the primary server in `address`",
        )
    replicas = int(found.get("connected_slaves", "0"))
    if replicas and not config.replicas and not config.failover_may_lose_writes:
        raise RedisUnsupported(
            f"a failover to one of its replicas ({replicas}) may lose writes that were confirmed",
            hint="let `replicas` of them confirm each write, or set `failover_may_lose_writes = true`",
        )


def _check_settings(answer: Any) -> None:
    if isinstance(answer, ServerError):
        raise RedisUnsupported(
            f"its settings cannot be read: {answer}",
            hint="allow the user CONFIG GET, or set `trust_server = true` if the server syncs each write to its disk",
        )
    texts = [one.decode(errors="replace") for one in answer]
    settings = dict(zip(texts[::2], texts[1::2], strict=True))
    wanted = {**_REQUIRED}
    if settings.get("maxmemory", "0") != "0":
        wanted["maxmemory-policy"] = "noeviction"
    for name, value in wanted.items():
        if (other := settings.get(name)) != value:
            fixed = f"set `{name} {value}` in redis.conf"
            hint = fixed if name == "cluster-enabled" else f"{fixed}, and run CONFIG SET {name} {value}"
            raise RedisUnsupported(f"the server has `{name} {other}`, with which it may lose data", hint=hint)


def _check_log(found: Mapping[str, str]) -> None:
    """Check that there is a log. It begins with all data, and a crash before these are written loses everything."""
    is_first = found.get("aof_base_size") == "0"
    is_complete = found.get("aof_rewrite_in_progress") == "0" and found.get("aof_last_bgrewrite_status") == "ok"
    if is_first and not is_complete:
        raise ServerError(f"{NO_LOG} the server does not have its append-only file yet")
