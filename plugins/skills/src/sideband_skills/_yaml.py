"""A limited YAML reader for frontmatter, which returns text, lists and mappings.

Scalars stay as written: ``1.10`` does not become a number that loses its zero, ``no`` does not become ``False``, and a
date does not become an object. Anchors, aliases and tags are rejected: frontmatter does not need them, and they make
YAML dangerous.
"""

from __future__ import annotations

from typing import Any

from attrs import Factory, define

_MAXIMUM_NODES = 2_000
_MAXIMUM_DEPTH = 16


class NotYaml(ValueError):
    """The text is not YAML, or uses unsupported features. The message contains the line and the reason."""


@define
class _OpenNode:
    """A list or mapping that is not complete yet."""

    value: list[Any] | dict[str, Any]
    key: str | None = None


@define
class _Builder:
    """Builds values without recursion, so that deep nesting cannot overflow the stack."""

    open: list[_OpenNode] = Factory(list)
    root: Any = None
    nodes: int = 0
    repeated: list[str] = Factory(list)

    def add(self, value: Any) -> None:
        self.nodes += 1
        if self.nodes > _MAXIMUM_NODES:
            raise NotYaml(f"more than {_MAXIMUM_NODES:,} values")
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
            raise NotYaml(f"nested deeper than {_MAXIMUM_DEPTH} levels")


def read_yaml(text: str) -> tuple[dict[str, Any], list[str]]:
    r"""Parse a mapping with all scalars as text, and return it with its duplicate keys, whose last value is used.

    Raises:
        NotYaml: if the text is not valid YAML, not a mapping, or exceeds the limits.

    Example:
        >>> read_yaml("name: demo\nmetadata: {version: 1.10}")
        ({'name': 'demo', 'metadata': {'version': '1.10'}}, [])
    """
    import yaml  # noqa: PLC0415 - loaded only for frontmatter

    builder = _Builder()
    documents = 0
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            match event:
                case yaml.DocumentStartEvent():
                    documents += 1
                case yaml.AliasEvent():
                    raise NotYaml(f"the alias `*{event.anchor}` is not supported")
                case yaml.ScalarEvent() | yaml.SequenceStartEvent() | yaml.MappingStartEvent() if event.tag:
                    raise NotYaml(f"the tag `{event.tag}` is not supported")
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
        raise NotYaml("expected a mapping of keys to values")
    return builder.root, builder.repeated


def _where(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}: {problem}" if mark is not None else problem
