"""What a place for secrets promises, the record it keeps, and the simplest such place."""

from __future__ import annotations

import base64
from typing import Any, Protocol

from attrs import define, field, frozen

__all__ = ["Backend", "MemoryBackend", "Stored", "Summary"]


@frozen
class Summary:
    """What may be told about a secret to whoever may use it.

    Args:
        name: its name.
        origins: the origins it may be sent to, normal form.
        text: whether it is text (else bytes).
        updated: when it was stored, UTC, ISO 8601.
    """

    name: str
    origins: tuple[str, ...]
    text: bool
    updated: str


@frozen
class Stored:
    """One secret, whole.

    Args:
        value: the value as bytes; UTF-8 if ``text``.
        headers: the headers to send, with ``{value}`` or ``{base64}`` where the value goes.
    """

    name: str
    value: bytes = field(repr=False)
    text: bool
    origins: tuple[str, ...]
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    updated: str

    @property
    def summary(self) -> Summary:
        """The record without its value."""
        return Summary(self.name, self.origins, self.text, self.updated)

    def as_data(self) -> dict[str, Any]:
        """As JSON data."""
        value = self.value.decode() if self.text else base64.b64encode(self.value).decode()
        return {
            "value": value,
            "text": self.text,
            "origins": list(self.origins),
            "headers": dict(self.headers),
            "updated": self.updated,
        }

    @classmethod
    def from_data(cls, name: str, data: dict[str, Any]) -> Stored:
        """From what ``as_data`` gave.

        Raises:
            KeyError, TypeError, ValueError: it is something else.
        """
        value = data["value"].encode() if data["text"] else base64.b64decode(data["value"], validate=True)
        return cls(
            name, value, bool(data["text"]), tuple(data["origins"]), tuple(data["headers"].items()), data["updated"]
        )


class Backend(Protocol):
    """A place where secrets are kept. Its methods block, and may be called from several threads at once.

    Attributes:
        name: as the configuration calls it.
        asks: whether a method may wait for a person (to unlock a keyring), so that waiting for it must be given up
            when the dispatch is cancelled.
    """

    name: str
    asks: bool

    def read(self, name: str) -> Stored | None:
        """The secret, or ``None``."""

    def write(self, stored: Stored) -> None:
        """Store it, in the place of one of the same name; durable on return."""

    def delete(self, name: str) -> bool:
        """Remove it, and tell whether it was there."""

    def summaries(self) -> tuple[Summary, ...]:
        """All of them, without values, by name."""


@define
class MemoryBackend:
    """Keeps secrets for the life of one host."""

    name: str = field(default="memory", init=False)
    asks: bool = field(default=False, init=False)
    _secrets: dict[str, Stored] = field(init=False, factory=dict, repr=False)

    def read(self, name: str) -> Stored | None:
        """See ``Backend``."""
        return self._secrets.get(name)

    def write(self, stored: Stored) -> None:
        """See ``Backend``."""
        self._secrets[stored.name] = stored

    def delete(self, name: str) -> bool:
        """See ``Backend``."""
        return self._secrets.pop(name, None) is not None

    def summaries(self) -> tuple[Summary, ...]:
        """See ``Backend``."""
        return tuple(stored.summary for _, stored in sorted(self._secrets.copy().items()))
