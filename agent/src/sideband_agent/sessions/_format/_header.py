"""The first record of a session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from .._errors import SessionTooNew

VERSION: Final = 1
"""The version of the format. Incremented for incompatible changes; unknown additions are preserved."""

_SESSION_ID = re.compile(r"[0-9a-f]{16}\Z")


class SessionHeader(BaseModel):
    """The properties of a whole session.

    Attributes:
        version: the version of the format.
        id: unique among all sessions.
        time: when it was created, in UTC.
        folder: the absolute working directory.
        channel: the channel in which it was created.
        parent: the session that it was forked from.
        copied: the number of entries copied by a fork or an import. Their runs cannot be resumed in this session.
        foreign: fields of another program's format that this one does not have, by the name of the format.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["session"] = "session"
    version: Literal[1] = VERSION
    id: str = Field(pattern=r"^[0-9a-f]{16}$")
    time: str = ""
    folder: str | None = None
    channel: str = "cli"
    parent: str | None = None
    copied: int = Field(default=0, ge=0)
    foreign: dict[str, JsonValue] | None = None

    @property
    def path(self) -> Path | None:
        """The working directory."""
        return None if self.folder is None else Path(self.folder)

    def exported(self) -> dict[str, Any]:
        """Return the header for a file, without ``copied``, which is only valid in one store."""
        return self.model_dump(mode="json", exclude_none=True, exclude={"copied"})

    def record(self) -> dict[str, Any]:
        """Return the header as it is stored."""
        return self.model_dump(mode="json", exclude_none=True)


def header_of(record: Mapping[str, Any]) -> SessionHeader | None:
    """Return the header of a record, or ``None`` if it is damaged.

    Raises:
        SessionTooNew: if it has a newer version of the format.
    """
    version = record.get("version")
    if isinstance(version, int) and version > VERSION:
        raise SessionTooNew(record.get("id"), version, VERSION)
    try:
        return SessionHeader.model_validate(record)
    except ValidationError:
        return None


def is_session_id(value: object) -> bool:
    """Return whether a value is a valid session id."""
    return isinstance(value, str) and _SESSION_ID.match(value) is not None
