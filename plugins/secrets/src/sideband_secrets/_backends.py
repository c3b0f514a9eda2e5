"""The protocol of sources of secrets, the record that they store, and the in-memory implementation."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from attrs import define, evolve, field, frozen


def now() -> str:
    """Return the current UTC time in ISO 8601, rounded down to seconds."""
    return _format(datetime.now(UTC))


def is_text(value: bytes) -> bool:
    """Return whether the value is UTF-8."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _format(time: datetime) -> str:
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")


@frozen
class Previous:
    """The value of a secret before its last rotation.

    Args:
        value: the value as bytes; UTF-8 if ``text``.
        until: when it expires, UTC, ISO 8601.
    """

    value: bytes = field(repr=False)
    text: bool
    until: str


@frozen
class Summary:
    """The public metadata of a secret.

    Args:
        name: the secret's name.
        origins: the origins that it may be sent to, normalized.
        text: whether the value is text; otherwise it is bytes.
        updated: when its value was stored, UTC, ISO 8601; ``None`` if unknown.
        version: the number of values so far, including this one; ``None`` if unknown.
        previous_until: when the previous value expires; ``None`` if there is no previous value.
    """

    name: str
    origins: tuple[str, ...]
    text: bool
    updated: str | None = None
    version: int | None = None
    previous_until: str | None = None


@frozen
class StoredSecret:
    """One secret with its value.

    Args:
        name: the name by which skills refer to it.
        value: the value as bytes; UTF-8 if ``text``.
        origins: the origins that it may be sent to.
        updated: the time of the last change, in UTC (ISO 8601).
        version: the version of the backend, if it counts them.
        headers: the headers to send, with ``{value}`` or ``{base64}`` as placeholder.
        previous: the previous value, if it was rotated.
        effect: the id of the effect that stored it.
    """

    name: str
    value: bytes = field(repr=False)
    text: bool
    origins: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    updated: str | None = None
    version: int | None = None
    previous: Previous | None = None
    effect: str | None = None

    @property
    def summary(self) -> Summary:
        """The secret's metadata, without its value."""
        until = self.previous.until if self.previous else None
        return Summary(self.name, self.origins, self.text, self.updated, self.version, until)

    def values(self) -> Iterator[bytes]:
        """Yield all values that must be redacted."""
        yield self.value
        if self.previous is not None:
            yield self.previous.value

    def successor(self, before: StoredSecret | None) -> StoredSecret:
        """Return this secret with the current time, and with the version after that of ``before``."""
        return evolve(self, updated=now(), version=_next(before), previous=None)

    def rotated(self, value: bytes, *, text: bool, grace: float) -> StoredSecret:
        """Return the secret with a new value. The previous one can be restored for ``grace`` seconds."""
        until = _format(datetime.now(UTC) + timedelta(seconds=grace))
        previous = Previous(self.value, self.text, until) if grace > 0 else None
        return evolve(self, value=value, text=text, updated=now(), version=_next(self), previous=previous)

    def rolled_back(self) -> StoredSecret | None:
        """Return the secret with its previous value, or ``None`` if that is not kept."""
        if self.previous is None or self.is_expired:
            return None
        return evolve(
            self,
            value=self.previous.value,
            text=self.previous.text,
            updated=now(),
            version=_next(self),
            previous=None,
        )

    @property
    def is_expired(self) -> bool:
        """Whether the previous value has expired."""
        return self.previous is not None and self.previous.until <= now()

    def current(self) -> StoredSecret:
        """Return the secret without an expired previous value."""
        return evolve(self, previous=None) if self.is_expired else self

    def to_data(self) -> dict[str, Any]:
        """Return the secret as JSON data."""
        data: dict[str, Any] = {
            "value": _text_of(self.value, text=self.text),
            "text": self.text,
            "origins": list(self.origins),
            "headers": dict(self.headers),
            "updated": self.updated,
            "version": self.version,
            "effect": self.effect,
        }
        if self.previous is not None:
            value = _text_of(self.previous.value, text=self.previous.text)
            data["previous"] = {"value": value, "text": self.previous.text, "until": self.previous.until}
        return data

    @classmethod
    def from_data(cls, name: str, data: dict[str, Any]) -> StoredSecret:
        """Return the secret from the data that ``to_data`` returned.

        Raises:
            KeyError, TypeError, AttributeError, ValueError: if the data has another format.
        """
        previous = data.get("previous")
        origins, headers = data["origins"], data["headers"]
        if not (isinstance(origins, list) and isinstance(headers, dict)):
            raise TypeError("origins and headers")
        if not all(isinstance(one, str) for one in (*origins, *headers, *headers.values())):
            raise TypeError("origins and headers")
        return cls(
            name,
            _value_of(data),
            bool(data["text"]),
            tuple(origins),
            tuple(headers.items()),
            data["updated"],
            data.get("version", 1),
            None if previous is None else Previous(_value_of(previous), bool(previous["text"]), str(previous["until"])),
            data.get("effect"),
        )


def _text_of(value: bytes, *, text: bool) -> str:
    return value.decode() if text else base64.b64encode(value).decode()


def _value_of(data: dict[str, Any]) -> bytes:
    value: str = data["value"]
    return value.encode() if data["text"] else base64.b64decode(value, validate=True)


def _next(before: StoredSecret | None) -> int:
    return 1 if before is None else (before.version or 1) + 1


Step = Callable[[StoredSecret | None], StoredSecret | None]


class Backend(Protocol):
    """A source of secrets. Every wait in it can be cancelled.

    Attributes:
        name: the name in the configuration and in lists.
        writable: whether ``change`` is supported; if not, it is never called.
    """

    @property
    def name(self) -> str:
        """The name in the configuration and in lists."""

    @property
    def writable(self) -> bool:
        """Whether secrets can be changed here."""

    async def read(self, name: str) -> StoredSecret | None:
        """Return the secret, or ``None`` if this source has no secret of that name.

        Raises:
            SecretsError: if the source is unavailable.
        """

    async def summaries(self, wanted: Callable[[str], bool]) -> tuple[Summary, ...]:
        """Return the metadata of all secrets whose name is ``wanted``, sorted by name."""

    async def all(self, *, ask: bool) -> tuple[StoredSecret, ...]:
        """Return all secrets that can be read.

        Args:
            ask: whether the user may be asked to open the source.

        Raises:
            SecretsError: if the source is unavailable, or would ask the user although that is not allowed.
        """

    async def change(self, name: str, step: Step) -> None:
        """Replace the secret with the result of ``step``, which is called with the current one.

        ``None`` stands for a missing secret. The change is atomic, and durable on return. On failure, nothing is
        changed. ``step`` may be called in another thread.
        """


@define
class MemoryBackend:
    """Keeps secrets for the lifetime of one host."""

    name: str = field(default="memory", init=False)
    writable: bool = field(default=True, init=False)
    _secrets: dict[str, StoredSecret] = field(init=False, factory=dict, repr=False)

    async def read(self, name: str) -> StoredSecret | None:
        """See ``Backend``."""
        return self._secrets.get(name)

    async def summaries(self, wanted: Callable[[str], bool]) -> tuple[Summary, ...]:
        """See ``Backend``."""
        return tuple(stored.summary for name, stored in sorted(self._secrets.items()) if wanted(name))

    async def all(self, *, ask: bool) -> tuple[StoredSecret, ...]:  # noqa: ARG002  never asks
        """See ``Backend``."""
        return tuple(self._secrets.values())

    async def change(self, name: str, step: Step) -> None:
        """See ``Backend``."""
        if (changed := step(self._secrets.get(name))) is None:
            self._secrets.pop(name, None)
        else:
            self._secrets[name] = changed
