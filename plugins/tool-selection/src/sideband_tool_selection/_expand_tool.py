"""The tool `tool_expand_tools`: a model requests the definitions of tools that were not sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from sideband.ops import Level
from sideband.tools import ToolContext, ToolOutput, tool

EXPAND: Final = "tool_expand_tools"
_MAX_NAMES = 20
_MAX_LISTED = 100


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class ExpandParams(BaseModel):
    """The parameters of ``tool_expand_tools``."""

    model_config = ConfigDict(extra="forbid")

    tool_names: Annotated[
        list[Annotated[str, Field(max_length=200)]],
        BeforeValidator(_as_list),
        Field(max_length=_MAX_NAMES, description="exact names of tools; none to list the available ones"),
    ] = []
    query: Annotated[
        str, Field(max_length=2_000, description="what the tools are for, to list the best matches first")
    ] = ""


@tool(EXPAND, level=Level.SAFE, read_only=True)
async def tool_expand_tools(params: ExpandParams, ctx: ToolContext) -> ToolOutput:
    """Get the definitions of tools that were not sent with this request. You can call them from the next request on.

    Only a selection of your tools is sent. If none of these fits, call this tool with `query` to list others by name in
    `available_expandable_tools`, then with their exact names. It gives you no tools besides those that you may call
    anyway.
    """
    tools = [one for one in ctx.tools() if one["name"] != EXPAND]
    sent = {one["name"]: bool(one["sent"]) for one in tools}
    asked = list(dict.fromkeys(params.tool_names))
    selected = [name for name in asked if sent.get(name)]
    expanded = _with_category([name for name in asked if sent.get(name) is False], tools)
    invalid = [name for name in asked if name not in sent]
    left = [one for one in tools if not one["sent"] and one["name"] not in expanded]
    success = bool(expanded or selected or not asked)
    content = {
        "success": success,
        "expanded_tools": expanded,
        "invalid_tools": invalid,
        "already_selected_tools": selected,
        "available_expandable_tools": _listed(left, " ".join([*invalid, params.query])),
    }
    return ToolOutput(content, is_error=not success, metadata={"expanded": [*expanded, *selected]})


def _with_category(names: Sequence[str], tools: Iterable[Mapping[str, Any]]) -> list[str]:
    """Add the tools that are sent together with these."""
    categories = {one["category"] for one in tools if one["name"] in names} - {""}
    mates = [one["name"] for one in tools if one["category"] in categories and not one["sent"]]
    return list(dict.fromkeys([*names, *mates]))


def _listed(tools: Sequence[Mapping[str, Any]], query: str) -> list[str]:
    """Return names, those that match first. There are at most 100, since a model reads them."""
    names = [one["name"] for one in tools]
    if query.strip() and names:
        from sideband_word_ranking import WordIndex  # noqa: PLC0415  needed only now

        index = WordIndex((one["name"], one["description"]) for one in tools)
        names = list(dict.fromkeys([*(names[position] for position in index.rank(query)), *names]))
        index.close()
    return names[:_MAX_LISTED]
