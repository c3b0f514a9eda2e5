"""The scope of `sql` capabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs
from sideband.ops import Scope


@attrs.frozen
class SqlScope(Scope, family="sql"):
    """The scope of a `sql` capability: `sql:path=notes.db,mode=read`.

    Attributes:
        path: the logical name (`notes.db`) or the absolute path without symbolic links.
        mode: `read` or `write`; a capability for `write` alone does not allow queries.
    """

    valid_values: ClassVar[Mapping[str, tuple[str, ...]]] = {"mode": ("read", "write")}

    path: str | None = None
    mode: str | None = None
