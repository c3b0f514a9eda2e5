"""What a child agent inherits from its parent."""

from __future__ import annotations

from attrs import field, frozen
from sideband.contexts import Lease

from ._approval_mode import SessionApprovalMode
from ._budget import Allowance
from ._child_sessions import ChildSession
from ._session_tools import SessionTools


@frozen
class Inherited:
    """What a child agent inherits from its parent.

    Attributes:
        depth: the number of agents above it.
        allowance: its share of the parent's budget.
        system_prompt: the parent's exact prompt.
        own: where it keeps its session, and the call that it works for.
        run: the run of the parent.
        approval: the approval mode of the parent's session, which the child has too.
        tools: the tools of the parent. The child's model sees the same as the parent's, so that prompt caches match.
    """

    depth: int
    own: ChildSession
    allowance: Allowance
    system_prompt: str = field(repr=False)
    run: Lease | None = field(repr=False)
    approval: SessionApprovalMode = field(repr=False)
    tools: SessionTools = field(repr=False)
