"""Lookup of the session entry that a chat command refers to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sideband import UsageError

if TYPE_CHECKING:
    from sideband_agent import Agent


def entry_id(agent: Agent, text: str) -> str:
    """Return the id of the entry with this label or id prefix.

    Raises:
        UsageError: if no entry or several entries match.
    """
    tree = agent.session.tree
    labeled = [entry for entry, label in tree.labels.items() if label == text]
    found = labeled or [entry.id for entry in tree.entries if entry.id.startswith(text)]
    if len(found) != 1:
        problem = "ambiguous entry id" if found else "unknown entry"
        raise UsageError(f"{problem} `{text}`", hint="/tree shows all entries and labels")
    return found[0]
