"""Parser for calls whose arguments are nested tags, each after a marker: MiniMax M3."""

from __future__ import annotations

import re
from typing import Any

from attrs import Factory, define

from ._calls import OfferedTools, ParsedCalls, UnusableCall, checked_call
from ._typed_values import is_list_schema, item_schema, property_schema, typed_value

MARK = "]<]minimax[>["

_TAG = re.compile(r"\s*<(?P<close>/?)(?P<key>[^<>\n]{1,128})>")
_CALL_END = re.compile(rf"(?:\s*{re.escape(MARK)}\s*</tool_call>)?")


@define
class _Node:
    """An argument or a part of it.

    Attributes:
        key: the name of the tag.
        schema: its JSON Schema.
        start: where its content starts.
        children: the parts, with their names.
    """

    key: str
    schema: Any
    start: int
    children: list[tuple[str, Any]] = Factory(list)

    def value(self, text: str, root: Any) -> Any:
        """Return the value of the content, whose text is given."""
        if not self.children:
            return typed_value(text, self.schema, root)
        if all(key == "item" for key, _ in self.children) and (
            self.schema is None or is_list_schema(self.schema, root)
        ):
            return [value for _, value in self.children]
        return _unique(self.children)


def parse_nested(text: str, opening: re.Match[str], tools: OfferedTools) -> ParsedCalls:
    """Parse a call.

    Raises:
        UnusableCall: if it is incomplete or cannot be used.
    """
    root = tools.get(opening["name"], {})
    stack, values = [_Node("invoke", root, opening.end())], list[tuple[int, int]]()
    position = opening.end()
    while True:
        mark = text.find(MARK, position)
        tag = _TAG.match(text, mark + len(MARK)) if mark >= 0 else None
        if tag is None:
            raise UnusableCall
        node, content = stack[-1], text[position:mark]
        is_value = bool(tag["close"]) and not node.children and len(stack) > 1
        if content.strip() and not is_value:
            raise UnusableCall
        position = tag.end()
        if not tag["close"]:
            stack.append(_Node(tag["key"], _child_schema(node, tag["key"], root), position))
            continue
        if tag["key"] != node.key:
            raise UnusableCall
        stack.pop()
        if not stack:
            break
        stack[-1].children.append((node.key, node.value(content, root)))
        if is_value:
            values.append((node.start, mark))
    call = checked_call(opening["name"], _unique(node.children), tools)
    closed = _CALL_END.match(text, position)
    return ParsedCalls(closed.end() if closed else position, (call,), tuple(values))


def _child_schema(node: _Node, key: str, root: Any) -> Any:
    if key == "item" and is_list_schema(node.schema, root):
        return item_schema(node.schema, root)
    return property_schema(node.schema, key, root)


def _unique(children: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(children)
    if len(found) < len(children):
        raise UnusableCall
    return found
