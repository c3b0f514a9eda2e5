"""The scope of an `mcp` capability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs
from sideband.ops import Scope


@attrs.frozen
class McpScope(Scope, family="mcp"):
    """The scope of an `mcp` capability: `mcp:server=github,catalog=…`.

    Args:
        server: the name of the server.
        catalog: the digest of the definitions of its tools that the user accepted. A capability without it accepts
            all later changes of the server.
        packages: the digest of the packages that may be installed for it.
        tool: the name of a tool, as the server says it.
        access: `read` for tools that change nothing, as the user configured it, otherwise `write`.
    """

    valid_values: ClassVar[Mapping[str, tuple[str, ...]]] = {"access": ("read", "write")}

    server: str | None = None
    catalog: str | None = None
    packages: str | None = None
    tool: str | None = None
    access: str | None = None
