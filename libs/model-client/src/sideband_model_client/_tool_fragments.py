"""Tools as they are sent: an agent offers the same ones in each turn."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from sideband.messages import CarryingTuple, Fragment, fragment
from sideband.providers import ToolSchema


def tool_fragments(
    tools: Sequence[ToolSchema],
    form: Hashable,
    build: Callable[[ToolSchema], Fragment],
    *,
    build_last: Callable[[ToolSchema], Fragment] | None = None,
) -> Sequence[Fragment]:
    """Return the fragments of tools. Each tool keeps its own, and the tools of an agent are looked up together.

    Args:
        tools: the tools.
        form: what the fragments depend on, such as the name of a protocol and whether ``build_last`` is given.
        build: returns the fragment of a tool.
        build_last: returns that of the last tool, if it differs.

    Example:
        >>> from sideband.messages import CarryingTuple, Fragment
        >>> from sideband.providers import ToolSchema
        >>> tools = CarryingTuple([ToolSchema(name="look"), ToolSchema(name="listen")])
        >>> [one.encoded for one in tool_fragments(tools, "names", lambda one: Fragment(b"[%r]" % one.name))]
        [b"['look']", b"['listen']"]
    """

    def build_all(tools: Sequence[ToolSchema]) -> CarryingTuple[Fragment]:
        if build_last is None:
            return CarryingTuple([fragment(one, form, build) for one in tools])
        return CarryingTuple([*(fragment(one, form, build) for one in tools[:-1]), build_last(tools[-1])])

    return fragment(tools, form, build_all) if isinstance(tools, CarryingTuple) else build_all(tools)
