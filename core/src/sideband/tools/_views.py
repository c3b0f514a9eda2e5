"""Views of tools: immutable whitelists, which can only be narrowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from attrs import field, frozen

from ..models._pieces import CarryingTuple
from ..providers import ToolSchema
from ._tool import Tool

_MOST_RESOLVED = 64


@frozen
class _Patterns:
    """Names, and beginnings of names that were written with a trailing ``*``."""

    exact: frozenset[str]
    beginnings: tuple[str, ...]

    @classmethod
    def of(cls, patterns: Iterable[str]) -> _Patterns:
        listed = _listed(patterns)
        exact = frozenset(one for one in listed if not one.endswith("*"))
        return cls(exact, tuple(one[:-1] for one in listed if one.endswith("*")))

    def match(self, name: str) -> bool:
        return name in self.exact or name.startswith(self.beginnings)

    def match_tool(self, tool: Tool) -> bool:
        return self.match(tool.name) or self.match(tool.model_name)


@frozen
class _Restriction:
    """What one call of ``narrow`` allows. ``None`` allows all."""

    names: _Patterns | None
    sources: _Patterns | None
    without: _Patterns

    def allows(self, tool: Tool) -> bool:
        names, sources = self.names, self.sources
        named = names is None or names.match_tool(tool)
        return named and not self.without.match_tool(tool) and (sources is None or sources.match(tool.source))


@frozen
class _NamedOnly:
    """Removes tools that an agent has only if they were named, unless they were."""

    named: frozenset[str]
    explicit: _Patterns

    def allows(self, tool: Tool) -> bool:
        if not tool.explicit and not self.explicit.match_tool(tool):
            return True
        return tool.name in self.named or tool.model_name in self.named


@frozen
class ToolView:
    """The tools that a caller may use: immutable, sorted by name. Tools can be removed, but never added.

    A view keeps its restrictions, so that ``resolve`` applies them to the tools that exist later.

    Attributes:
        tools: the tools, sorted by name.

    Example:
        >>> view = ToolView.of([echo])
        >>> view.names, view.narrow(["echo", "other"]).names, view.narrow([]).names
        (('echo',), ('echo',), ())
        >>> view.narrow(["e*"]).resolve(ToolView()).names, view.narrow(sources=["skill *"]).resolve(view).names
        ((), ())
    """

    tools: tuple[Tool, ...] = ()
    _restrictions: tuple[_Restriction | _NamedOnly, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, tools: Iterable[Tool]) -> ToolView:
        """Return a view of these tools."""
        return cls(tuple(sorted(tools, key=lambda one: one.name)))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, sorted."""
        return tuple(one.name for one in self.tools)

    def narrow(
        self,
        names: Iterable[str] | None = None,
        *,
        sources: Iterable[str] | None = None,
        without: Iterable[str] = (),
    ) -> ToolView:
        """Return a view with only the named tools, and only those of the named sources.

        A name or source that ends in ``*`` matches by prefix. Those that match no tool are ignored: see ``unknown``.

        Args:
            names: the names; a tool matches by ``name`` or by ``model_name``. ``None`` for all.
            sources: the sources, such as ``plugin memory`` or ``skill *``, as in ``Tool.source``. ``None`` for all.
            without: the names of tools to remove, whatever else is named.

        Raises:
            TypeError: if ``names``, ``sources`` or ``without`` is a text instead of a list.
        """
        wanted = None if names is None else _Patterns.of(names)
        known = None if sources is None else _Patterns.of(sources)
        return self._restricted(_Restriction(wanted, known, _Patterns.of(without)))

    def without_unnamed(self, names: Iterable[str] = (), *, explicit: Iterable[str] = ()) -> ToolView:
        """Return a view without the tools that must be named, unless they are.

        Args:
            names: the names; one that ends in ``*`` names no such tool.
            explicit: the names of further tools that must be named, besides those with ``Tool.explicit``.
        """
        return self._restricted(_NamedOnly(frozenset(_listed(names)), _Patterns.of(explicit)))

    def _restricted(self, restriction: _Restriction | _NamedOnly) -> ToolView:
        return ToolView(tuple(filter(restriction.allows, self.tools)), (*self._restrictions, restriction))

    def resolve(self, current: ToolView) -> ToolView:
        """Return the tools of another view that this view's restrictions allow.

        A tool that this view did not have is included if the restrictions already allowed it.
        """
        if not self._restrictions:
            return current
        known = current._resolved
        found = known.get(self._restrictions)
        if found is None:
            allowed = [one for one in current.tools if all(rule.allows(one) for rule in self._restrictions)]
            found = ToolView(tuple(allowed), (*current._restrictions, *self._restrictions))
            if len(known) < _MOST_RESOLVED:
                known[self._restrictions] = found
        return found

    def unknown(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names that match no tool in this view."""
        return tuple(name for name in _listed(names) if not self._has(name))

    def get(self, name: str) -> Tool | None:
        """Return the tool with that ``name`` or ``model_name``, or ``None``."""
        return self._by_name.get(name)

    def schemas(self) -> tuple[ToolSchema, ...]:
        """Return the schemas of the tools for a model request, as one object."""
        return self._schemas

    @cached_property
    def schema_size(self) -> int:
        """The length of all schemas as JSON, in characters."""
        return sum([one.schema_size for one in self.tools])

    @cached_property
    def _resolved(self) -> dict[tuple[_Restriction | _NamedOnly, ...], ToolView]:
        """The results of ``resolve``, which agents with equal restrictions share."""
        return {}

    @cached_property
    def _schemas(self) -> tuple[ToolSchema, ...]:
        return CarryingTuple([one.schema for one in self.tools])

    @cached_property
    def _by_name(self) -> Mapping[str, Tool]:
        found: dict[str, Tool] = {}
        for one in self.tools:
            found.setdefault(one.name, one)
            found.setdefault(one.model_name, one)
        return found

    def _has(self, name: str) -> bool:
        if name.endswith("*"):
            return any(one.startswith(name[:-1]) for one in self._by_name)
        return name in self._by_name


def _listed(names: Iterable[str]) -> tuple[str, ...]:
    # The characters of a text are names too, and its `*` would match all tools.
    if isinstance(names, str):
        raise TypeError(f"expected a list of names, got a text: write [{names!r}]")
    return tuple(names)
