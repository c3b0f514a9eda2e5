"""The scope of `files` capabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs
from sideband.ops import Scope


@attrs.frozen
class FilesScope(Scope, family="files"):
    """The scope of a `files` capability: `files:path=reports/*,mode=read|write`.

    Args:
        path: relative to the host's folder for files (`reports/may.csv`), or absolute without symbolic links. A folder
            ends with `/`, so that `reports/*` includes the folder and its content; the host's own folder is `./`.
        mode: `read` or `write`; by default `read`.
        place: `home` for the host's folder, `system` for absolute paths; by default derived from `path`, and `home`
            without a `path`.
        hidden: `yes` if a component of the path begins with a dot (`.git/hooks`, `.ssh`), otherwise `no`; by default
            `no`. `hidden=*` allows both.
    """

    valid_values: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "mode": ("read", "write"),
        "place": ("home", "system"),
        "hidden": ("yes", "no"),
    }

    path: str | None = None
    mode: str | None = None
    place: str | None = None
    hidden: str | None = None

    @classmethod
    def complete(cls, fields: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
        """Return the restrictive defaults of omitted fields."""
        paths = fields.get("path", ("",))
        places = {"system" if path.startswith("/") else "home" for path in paths}
        return {"mode": ("read",), "hidden": ("no",), "place": tuple(sorted(places))}
