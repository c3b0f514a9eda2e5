"""The errors of the store, and their mapping from those of the server.

StoreError                                    store.failed        (of sideband)
├── RedisBusy(TimeoutError)                   redis.busy
├── RedisCutOff                               redis.cut_off       this host has lost its locks
├── RedisDamaged                              redis.damaged       another program has changed the data
├── RedisUnconfirmed                          redis.unconfirmed   too few replicas have a write
├── RedisUnreachable(ConnectionError)         redis.unreachable
├── RedisUnsupported                          redis.unsupported   newer data, or a server that may lose it
├── RedisUnwritable(OSError)                  redis.unwritable
└── RedisValueError(ValueError)               redis.value
"""

from __future__ import annotations

from sideband import StoreError

_UNWRITABLE = {
    "MISCONF": "read the log of the server, free some space on its disk, and retry",
    "NOPERM": "grant the user of `address` all commands on the keys of `prefix`, and CONFIG, INFO, TIME and WAIT",
    "NOREPLICAS": "start the replicas that `min-replicas-to-write` of the server demands",
    "OOM": "raise `maxmemory` of the server, or delete data; then retry",
    "READONLY": "name the primary server in `address`",
}
_REFUSED = {
    "DENIED": "set a password or `protected-mode no` on the server",
    "NOAUTH": "name the user in `address`, and set `password`",
    "WRONGPASS": "check the user in `address`, and `password`",
}
NO_LOG = "NOAOF"
# The server has not executed the command, and soon may.
_TEMPORARY = ("LOADING", "MASTERDOWN", NO_LOG)
_TOO_MANY = "max number of clients"


class RedisBusy(StoreError, TimeoutError):
    """The server, a free connection to it, or the transaction of another host took longer than the time limit."""

    code = "redis.busy"

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(f"the Redis store is busy: {problem}", hint=hint, retryable=True)


class RedisCutOff(StoreError):
    """The server no longer knows this host: another one has taken its locks, or the data was lost."""

    code = "redis.cut_off"

    def __init__(self) -> None:
        super().__init__(
            "this host was cut off from the Redis store: others may have taken its locks, or the server has lost data",
            hint="check the network to the server, and that it still has its data; then restart the host",
        )


class RedisDamaged(StoreError):
    """A document, a record or a key is not what the store has written. Nothing was changed."""

    code = "redis.damaged"

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(
            f"the Redis store is damaged at {key[:80]!a}: {problem}",
            hint="restore the data, or delete what is damaged with redis-cli; and let no other program use `prefix`",
        )


class RedisUnconfirmed(StoreError):
    """Fewer replicas than ``replicas`` have confirmed a write. The primary server has made it."""

    code = "redis.unconfirmed"

    def __init__(self, confirmed: int, wanted: int) -> None:
        super().__init__(
            f"the write was made, but {confirmed} of {wanted} replicas confirmed it, and a failover could lose it",
            hint="check the replicas of the server, or lower `replicas`",
        )


class RedisUnreachable(StoreError, ConnectionError):
    """The server cannot be reached, or the connection broke during a write, which may have been made."""

    code = "redis.unreachable"

    def __init__(self, problem: str, *, hint: str = "") -> None:
        super().__init__(
            f"cannot reach the Redis store: {problem}",
            hint=hint or "check that the server runs and that `address` names it, then retry",
            retryable=True,
        )


class RedisUnsupported(StoreError):
    """The data belongs to a newer version, or the server may lose what it has confirmed. Nothing was changed."""

    code = "redis.unsupported"

    def __init__(self, problem: str, *, hint: str) -> None:
        self.problem = problem
        super().__init__(f"cannot use the Redis store: {problem}", hint=hint)


class RedisUnwritable(StoreError, OSError):
    """The server refuses to write. Nothing was partially written."""

    code = "redis.unwritable"

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(f"cannot write to the Redis store: {problem}", hint=hint)


class RedisValueError(StoreError, ValueError):
    """A key or a value cannot be stored. Nothing was written."""

    code = "redis.value"

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(
            f"value for {key[:80]!a} cannot be stored: {problem}",
            hint="use only objects of text, finite numbers, booleans, lists and objects; encode bytes as base64",
        )


class ServerError(Exception):
    """An error that the server has answered. The command has changed nothing."""

    def __init__(self, text: str) -> None:
        # The server repeats arguments, which may be secret.
        super().__init__(text.partition(", with args beginning")[0].strip())

    @property
    def kind(self) -> str:
        """The first word, such as ``OOM``."""
        return str(self).partition(" ")[0]

    @property
    def is_temporary(self) -> bool:
        """Whether the same command may soon succeed, as while the server starts."""
        return self.kind in _TEMPORARY or _TOO_MANY in str(self)


class ConnectionLost(Exception):
    """The connection broke, and it is unknown whether the last commands were executed."""


def store_error(error: ServerError) -> StoreError:
    """Return the store's error for one of the server."""
    text = str(error)
    if error.kind in _UNWRITABLE:
        return RedisUnwritable(text, hint=_UNWRITABLE[error.kind])
    if error.kind in _REFUSED:
        # The text may be long, and names what the hint says better.
        return RedisUnreachable(f"the server refuses the connection ({error.kind})", hint=_REFUSED[error.kind])
    if error.is_temporary:
        hint = "raise `maxclients` of the server, or lower `max_connections`" if _TOO_MANY in text else ""
        if error.kind == NO_LOG:
            hint = "wait until INFO shows `aof_rewrite_in_progress:0`, or read the log of the server"
        return RedisUnreachable(text, hint=hint)
    if error.kind == "BUSY":
        return RedisBusy(text, hint="end the script that another client runs, with SCRIPT KILL, and retry")
    is_type = error.kind == "WRONGTYPE"
    hint = "use a `prefix` that no other program uses" if is_type else "check the log of the server"
    return StoreError(f"the Redis store failed: {text}", hint=hint)
