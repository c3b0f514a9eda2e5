"""What capabilities of this family can limit."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from sideband.ops import Scope


@attrs.frozen
class FilesScope(Scope, family="files"):
    """The fields of a `files` capability: `files:path=reports/*,mode=read|write`.

    Args:
        path: below the host's folder for files (`reports/may.csv`), or absolute without symbolic links. A folder ends
            with `/`, so that `reports/*` means the folder and all that is in it; the host's own is `./`.
        mode: `read` or `write`. A capability that leaves it out means `read`.
        place: `home` for the host's folder, `system` for absolute paths. A capability that leaves it out means what its
            `path` begins with: without one, `home` only.
        hidden: `yes` if a part of the path begins with a dot (`.git/hooks`, `.ssh`), else `no`. A capability that
            leaves it out means `no`; `hidden=*` means both.
    """

    path: str | None = None
    mode: str | None = None
    place: str | None = None
    hidden: str | None = None

    @classmethod
    def complete(cls, fields: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
        """Reading, what is not hidden, and the host's own folder, unless the capability says more."""
        paths = fields.get("path", ("",))
        places = {"system" if path.startswith("/") else "home" for path in paths}
        return {"mode": ("read",), "hidden": ("no",), "place": tuple(sorted(places))}
