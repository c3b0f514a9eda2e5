"""What a capability of `sql` may limit."""

from __future__ import annotations

import attrs
from sideband.ops import Scope


@attrs.frozen
class SqlScope(Scope, family="sql"):
    """What a capability of `sql` may limit: `sql:path=notes.db,mode=read`.

    Attributes:
        path: the logical name (`notes.db`) or the absolute path without symbolic links.
        mode: `read` or `write`; a capability that names `write` only does not allow queries.
    """

    path: str | None = None
    mode: str | None = None
