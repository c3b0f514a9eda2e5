"""Grants that a person gave to a skill once, remembered under the digest of the skill as it was then."""

from __future__ import annotations

import json
import os
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError
from ..ops import Grant
from ..state import write_state_file


class RememberedGrants:
    """The file ``grants.toml``. A skill that changes has another digest, and has to be granted again."""

    def __init__(self, home: Path) -> None:
        self._file = home / "grants.toml"
        self._seen: object = None  # the file as it was when it was read last
        self._known: dict[str, Grant] = {}

    def get(self, digest: str) -> Grant:
        """What was granted to the skill with this digest; nothing if it was never asked."""
        seen = self._look()
        if seen != self._seen:
            self._known = {}
            self._seen = seen
        if digest not in self._known:
            entry = self._read().get(digest, {})
            self._known[digest] = Grant.parse(entry.get("capabilities", ()))
        return self._known[digest]

    def remember(self, digest: str, skill: str, grant: Grant) -> None:
        """Add ``grant`` to what the skill with this digest holds."""
        entries = self._read()
        held = Grant.parse(entries.get(digest, {}).get("capabilities", ()))
        both = Grant.of([*held.capabilities, *grant.capabilities])
        entries[digest] = {
            "skill": skill,
            "capabilities": list(both.texts()),
            "granted": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_state_file(self._file, "".join(_table(name, entry) for name, entry in sorted(entries.items())))

    def _look(self) -> object:
        """What tells whether it is another file than before, or was written to."""
        try:
            status = os.stat(self._file)  # noqa: PTH116  once a call: half of what pathlib takes
        except OSError as error:
            return error.errno
        return status.st_ino, status.st_mtime_ns, status.st_size, status.st_ctime_ns

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            skills = tomllib.loads(self._file.read_text(encoding="utf-8")).get("skills", {})
        except FileNotFoundError:
            return {}
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._invalid("skills", f"it is not TOML: {error}") from error
        except OSError as error:
            raise self._invalid("skills", f"it can't be read: {error.strerror}") from error
        for digest, entry in skills.items() if isinstance(skills, dict) else [("skills", skills)]:
            capabilities = entry.get("capabilities") if isinstance(entry, dict) else None
            if not isinstance(capabilities, list) or not all(isinstance(one, str) for one in capabilities):
                raise self._invalid(f"skills.{digest}", "it is no table with a list of capabilities")
        return dict(skills)

    def _invalid(self, key: str, problem: str) -> ConfigurationError:
        hint = "mend it, or delete it and grant again"
        return ConfigurationError(key, problem, source=str(self._file), hint=hint)


def _table(digest: str, entry: dict[str, Any]) -> str:
    # JSON strings and lists of strings are TOML too.
    lines = [f"{name} = {json.dumps(value)}" for name, value in entry.items()]
    return "\n".join([f"[skills.{json.dumps(digest)}]", *lines, "", ""])
