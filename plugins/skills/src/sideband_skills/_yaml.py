"""Reads frontmatter that is valid YAML, as text, lists and mappings, within limits.

Every scalar stays as it was written: ``1.10`` is not a number that loses its zero, ``no`` is not ``False``, and a
date is not an object. Anchors, aliases and tags have no place in frontmatter, and are where YAML is dangerous.
"""

from __future__ import annotations

from typing import Any

from attrs import Factory, define

_MAXIMUM_NODES = 10_000
_MAXIMUM_DEPTH = 16


class NotYaml(ValueError):
    """The text is not YAML, or not the part of it that is read here. The message says where and why."""


@define
class _OpenNode:
    """A list or mapping that has begun and not ended."""

    value: list[Any] | dict[str, Any]
    key: str | None = None


@define
class _Builder:
    """Puts nodes together without recursion, so that depth is a number to compare and not a crash."""

    open: list[_OpenNode] = Factory(list)
    root: Any = None
    nodes: int = 0
    repeated: list[str] = Factory(list)

    def add(self, value: Any) -> None:
        self.nodes += 1
        if self.nodes > _MAXIMUM_NODES:
            raise NotYaml(f"it has more than {_MAXIMUM_NODES:,} values")
        if not self.open:
            self.root = value
            return
        parent = self.open[-1]
        if isinstance(parent.value, list):
            parent.value.append(value)
        elif parent.key is None:
            if not isinstance(value, str):
                raise NotYaml("a key is a list or a mapping")
            parent.key = value
        else:
            if parent.key in parent.value:
                self.repeated.append(parent.key)
            parent.value[parent.key] = value
            parent.key = None

    def begin(self, value: list[Any] | dict[str, Any]) -> None:
        self.add(value)
        self.open.append(_OpenNode(value))
        if len(self.open) > _MAXIMUM_DEPTH:
            raise NotYaml(f"it is nested deeper than {_MAXIMUM_DEPTH}")


def read_yaml(text: str) -> tuple[dict[str, Any], list[str]]:
    r"""The mapping that ``text`` is, with all scalars as text, and the keys that stand twice (the last one counts).

    Raises:
        NotYaml: it is no mapping, no YAML, or beyond the limits.

    Example:
        >>> read_yaml("name: demo\nmetadata: {version: 1.10}")
        ({'name': 'demo', 'metadata': {'version': '1.10'}}, [])
    """
    import yaml  # noqa: PLC0415 - only where there is frontmatter to read

    builder = _Builder()
    documents = 0
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            match event:
                case yaml.DocumentStartEvent():
                    documents += 1
                case yaml.AliasEvent():
                    raise NotYaml(f"`*{event.anchor}` refers to another value")
                case yaml.ScalarEvent() | yaml.SequenceStartEvent() | yaml.MappingStartEvent() if event.tag:
                    raise NotYaml(f"the tag `{event.tag}` is not read here")
                case yaml.ScalarEvent():
                    builder.add("" if event.implicit[0] and event.value in ("null", "~") else event.value)
                case yaml.SequenceStartEvent():
                    builder.begin([])
                case yaml.MappingStartEvent():
                    builder.begin({})
                case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                    builder.open.pop()
                case _:
                    pass
    except (yaml.YAMLError, UnicodeError, RecursionError) as error:
        raise NotYaml(_where(error)) from error
    if documents > 1 or not isinstance(builder.root, dict):
        raise NotYaml("it is no mapping of keys to values")
    return builder.root, builder.repeated


def _where(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}: {problem}" if mark is not None else problem
