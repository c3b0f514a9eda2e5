"""What a place for secrets promises, the record it keeps, and the simplest such place."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from attrs import define, evolve, field, frozen


def now() -> str:
    """The time, UTC, ISO 8601, to the second."""
    return _written(datetime.now(UTC))


def is_text(value: bytes) -> bool:
    """Whether it is UTF-8."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _written(time: datetime) -> str:
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")


@frozen
class Previous:
    """The value that a secret had before it was rotated.

    Args:
        value: the value as bytes; UTF-8 if ``text``.
        until: until when it can be had back, UTC, ISO 8601.
    """

    value: bytes = field(repr=False)
    text: bool
    until: str


@frozen
class Summary:
    """What may be told about a secret to whoever may use it.

    Args:
        name: its name.
        origins: the origins it may be sent to, normal form.
        text: whether it is text (else bytes).
        updated: when its value was stored, UTC, ISO 8601; ``None`` if nobody knows.
        version: how many values it has had, this one included; ``None`` if nobody counts.
        previous_until: until when the value before can be had back; ``None`` if there is none.
    """

    name: str
    origins: tuple[str, ...]
    text: bool
    updated: str | None = None
    version: int | None = None
    previous_until: str | None = None


@frozen
class StoredSecret:
    """One secret, whole.

    Args:
        value: the value as bytes; UTF-8 if ``text``.
        headers: the headers to send, with ``{value}`` or ``{base64}`` where the value goes.
        previous: the value before, if it was rotated.
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
        """The record without its value."""
        until = self.previous.until if self.previous else None
        return Summary(self.name, self.origins, self.text, self.updated, self.version, until)

    def values(self) -> Iterator[bytes]:
        """All values that must not be seen."""
        yield self.value
        if self.previous is not None:
            yield self.previous.value

    def successor(self, before: StoredSecret | None) -> StoredSecret:
        """This secret, stored now in the place of ``before``, of which nothing is kept but the count of its values."""
        return evolve(self, updated=now(), version=_next(before), previous=None)

    def rotated(self, value: bytes, *, text: bool, grace: float) -> StoredSecret:
        """The secret with a new value. The old one can be had back for ``grace`` seconds."""
        until = _written(datetime.now(UTC) + timedelta(seconds=grace))
        previous = Previous(self.value, self.text, until) if grace > 0 else None
        return evolve(self, value=value, text=text, updated=now(), version=_next(self), previous=previous)

    def rolled_back(self) -> StoredSecret | None:
        """The secret with the value from before its rotation, or ``None`` if that is gone."""
        if self.previous is None or self.is_past:
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
    def is_past(self) -> bool:
        """Whether the time is over for which the value before is kept."""
        return self.previous is not None and self.previous.until <= now()

    def current(self) -> StoredSecret:
        """The secret without a previous value whose time is over."""
        return evolve(self, previous=None) if self.is_past else self

    def as_data(self) -> dict[str, Any]:
        """As JSON data."""
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
        """From what ``as_data`` gave.

        Raises:
            KeyError, TypeError, AttributeError, ValueError: it is something else.
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
    """A place that secrets come from. Every wait in it can be cancelled.

    Attributes:
        name: as the configuration and lists call it.
        writable: whether ``change`` is possible; if not, it is never called.
    """

    @property
    def name(self) -> str:
        """As the configuration and lists call it."""

    @property
    def writable(self) -> bool:
        """Whether secrets can be changed here."""

    async def read(self, name: str) -> StoredSecret | None:
        """The secret, or ``None`` if there is none of that name here.

        Raises:
            SecretsError: nobody knows, since the place can't be used.
        """

    async def summaries(self, wanted: Callable[[str], bool]) -> tuple[Summary, ...]:
        """All secrets whose name is ``wanted``, without values, by name."""

    async def change(self, name: str, step: Step) -> None:
        """Store what ``step`` makes of the secret of that name, both of which may be ``None``: none.

        Nobody changes it meanwhile, and it is durable on return; what fails changes nothing. ``step`` may be called
        in another thread.
        """


@define
class MemoryBackend:
    """Keeps secrets for the life of one host."""

    name: str = field(default="memory", init=False)
    writable: bool = field(default=True, init=False)
    _secrets: dict[str, StoredSecret] = field(init=False, factory=dict, repr=False)

    async def read(self, name: str) -> StoredSecret | None:
        """See ``Backend``."""
        return self._secrets.get(name)

    async def summaries(self, wanted: Callable[[str], bool]) -> tuple[Summary, ...]:
        """See ``Backend``."""
        return tuple(stored.summary for name, stored in sorted(self._secrets.items()) if wanted(name))

    async def change(self, name: str, step: Step) -> None:
        """See ``Backend``."""
        if (changed := step(self._secrets.get(name))) is None:
            self._secrets.pop(name, None)
        else:
            self._secrets[name] = changed
