"""What a child agent has of its parent."""

from __future__ import annotations

from attrs import field, frozen
from sideband.tools import ToolView

from ._budget import Allowance


@frozen
class Inherited:
    """What a child has of its parent.

    Attributes:
        depth: how many agents stand above it.
        call: the tool call that it works for, ``session:run:step`` of its parent; ``None`` if it is no tool's.
        allowance: its share of the parent's budget.
        system_prompt: the parent's, to the byte.
        offered: the tools that the parent's model is told about, to the byte.
    """

    depth: int
    call: str | None
    allowance: Allowance
    system_prompt: str = field(repr=False)
    offered: ToolView = field(repr=False)
