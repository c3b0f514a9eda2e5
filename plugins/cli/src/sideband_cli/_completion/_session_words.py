"""The names of sessions for completion, remembered until the store of the host changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sideband.rendering import render
from sideband.state import default_home, make_home, write_state_file

if TYPE_CHECKING:
    from sideband.settings import LoadedSettings

_MOST = 50
_SHOWN = 60


def session_words(settings: LoadedSettings) -> Mapping[str, str]:
    """Return the words for sessions with the beginning of their first messages: `last`, names, and ids of the others.

    Opening a host takes too long for each press of a key.
    """
    home = default_home()
    cache = home / "cache" / "session-words.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(cache.read_text(encoding="utf-8"))
        if known["state"] == _state_of(home / "store"):
            return {str(word): str(text) for word, text in known["words"].items()}
    words = _stored(settings)
    with suppress(OSError):
        make_home(cache.parent)
        # The state after the host was closed, which may tidy its store.
        write_state_file(cache, json.dumps({"state": _state_of(home / "store"), "words": words}))
    return words


def _state_of(folder: Path) -> list[list[Any]]:
    """Return what changes with each file of the store."""
    found = []
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            status = path.stat()
            if status.st_size:
                found.append([path.name, status.st_mtime_ns, status.st_size])
    return found


def _stored(settings: LoadedSettings) -> dict[str, str]:
    from sideband.command_line import run_async

    async def find() -> dict[str, str]:
        from sideband import Host
        from sideband_agent.sessions import Sessions

        async with Host(settings=settings, reads_only=True) as host:
            found = await Sessions(host.store, host.home).list(limit=_MOST)
        words = {"last": "the session that was used last"}
        for info in found:
            word = info.name if info.name and info.name.isprintable() else info.id
            words[word] = render(info.first)[:_SHOWN]
        return words

    return run_async(find)
