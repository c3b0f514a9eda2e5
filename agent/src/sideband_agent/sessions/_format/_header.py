"""The first record of a session: what it is, and where it came from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from .._errors import SessionTooNew

VERSION: Final = 1
"""Of the format. A change that this version could not read makes it 2; what is only new is kept as it is."""

_SESSION_ID = re.compile(r"[0-9a-f]{16}\Z")


class SessionHeader(BaseModel):
    """What holds for a whole session.

    Attributes:
        version: of the format.
        id: unique among all sessions.
        time: when it was made, in UTC.
        folder: the working directory; absolute.
        channel: where its user was.
        parent: the session that it was forked from.
        copied: how many of its entries came from elsewhere, with a fork or an import. A run that they began is not
            this session's to go on with.
        foreign: what another program's format says of it beyond what fits here, by the name of the format.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["session"] = "session"
    version: Literal[1] = VERSION
    id: str = Field(pattern=r"^[0-9a-f]{16}$")
    time: str = ""
    folder: str | None = None
    channel: str = "cli"
    parent: str | None = None
    copied: int = Field(0, ge=0)
    foreign: dict[str, JsonValue] | None = None

    @property
    def path(self) -> Path | None:
        """The working directory."""
        return None if self.folder is None else Path(self.folder)

    def exported(self) -> dict[str, Any]:
        """The header as files have it: what came from elsewhere concerns one store only."""
        return self.model_dump(mode="json", exclude_none=True, exclude={"copied"})

    def record(self) -> dict[str, Any]:
        """The header as it is stored."""
        return self.model_dump(mode="json", exclude_none=True)


def header_of(record: Mapping[str, Any]) -> SessionHeader | None:
    """The header that a record holds; ``None`` if it is damaged.

    Raises:
        SessionTooNew: it has a newer version of the format.
    """
    version = record.get("version")
    if isinstance(version, int) and version > VERSION:
        raise SessionTooNew(record.get("id"), version, VERSION)
    try:
        return SessionHeader.model_validate(record)
    except ValidationError:
        return None


def is_session_id(told: object) -> bool:
    """Whether this can be the id of a session."""
    return isinstance(told, str) and _SESSION_ID.match(told) is not None
