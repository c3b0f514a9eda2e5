"""What a child agent inherits from its parent."""

from __future__ import annotations

from attrs import field, frozen
from sideband.tools import ToolView

from ._budget import Allowance


@frozen
class Inherited:
    """What a child agent inherits from its parent.

    Attributes:
        depth: the number of agents above it.
        call: the tool call that it works for, ``session:run:step`` of its parent; ``None`` if a plugin spawned it.
        allowance: its share of the parent's budget.
        system_prompt: the parent's exact prompt.
        offered: the tools that the parent's model sees. The child's model sees the same, so that prompt caches match.
    """

    depth: int
    call: str | None
    allowance: Allowance
    system_prompt: str = field(repr=False)
    offered: ToolView = field(repr=False)
