"""The entry of a session that a chat command means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sideband import UsageError

if TYPE_CHECKING:
    from sideband_agent import Agent


def entry_id(agent: Agent, text: str) -> str:
    """Return the id of the entry that a label, or the beginning of an id, means.

    Raises:
        UsageError: no entry has it, or several begin so.
    """
    tree = agent.session.tree
    labelled = [entry for entry, label in tree.labels.items() if label == text]
    found = labelled or [entry.id for entry in tree.entries if entry.id.startswith(text)]
    if len(found) != 1:
        problem = "several entries begin so" if found else "there is no such entry"
        raise UsageError(f"`{text}`: {problem}", hint="/tree shows them, with their labels")
    return found[0]
