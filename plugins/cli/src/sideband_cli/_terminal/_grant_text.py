"""Remembered grants as text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ._request_text import question_rows

if TYPE_CHECKING:
    from sideband.grants import GivenGrant


def describe_grant(one: GivenGrant, *, details: bool = False) -> str:
    """Return who has a grant; with ``details`` also its id, how long it lasts, when it was given, and by whom."""
    by = f" by {one.requester}" if one.requester else ""
    holder = f"{one.kind} {one.subject}{by}"
    if not details:
        return holder
    scope = "always" if one.session is None else f"session {one.session}"
    when = f", given {_time(one.given)}" if one.given is not None else ""
    return f"{one.id}  {holder}, {scope}{when}" + (f" by {one.by}" if one.by else "")


def grant_rows(title: str, one: GivenGrant, width: int) -> list[str]:
    """Return the rows that show a grant completely, below a title."""
    return question_rows([title, *(f"  {text}" for text in one.capabilities)], width)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().isoformat(timespec="seconds")
