"""The plugins of a host: the record of each, and the slot of each that can be loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from types import ModuleType
from weakref import WeakSet

from attrs import define, field

from ._errors import PluginNotFound
from ._kinds import KINDS, When
from ._objects import module_of
from ._once import Once
from ._plugin import LoadedPlugin
from ._records import PluginRecord, State


@define(eq=False)
class Loadable:
    """A plugin that can be loaded, with the two steps that run once."""

    record: PluginRecord
    examined: Once[LoadedPlugin]
    activated: Once[LoadedPlugin]
    active: LoadedPlugin | None = None

    @classmethod
    def of(cls, plugin: LoadedPlugin) -> Loadable:
        """Return the slot of a plugin that is active."""
        return cls(plugin.record, Once.done(plugin), Once.done(plugin), plugin)


@define(eq=False)
class PluginTable:
    """All plugins of a host.

    Args:
        make_slot: makes the slot of a record, given whether no other plugin has its name.

    Attributes:
        records: all plugins, usable or not, sorted by kind and name.
        slots: the plugins that can be loaded, by kind and name.
    """

    _make_slot: Callable[[PluginRecord, bool], Loadable]
    records: tuple[PluginRecord, ...] = ()
    slots: dict[tuple[str, str], Loadable] = field(factory=dict)
    _of_kind: dict[str, list[PluginRecord]] = field(factory=dict, init=False)

    def fill(self, records: Iterable[PluginRecord], known: Mapping[PluginRecord, Loadable] | None = None) -> None:
        """Set the records, and make a slot for each that can be loaded, except for those whose slot is ``known``."""
        self.records = tuple(records)
        self._of_kind = {}
        slots: dict[tuple[str, str], Loadable] = {}
        named = Counter(record.name for record in self.records)
        for record in self.records:
            self._of_kind.setdefault(record.kind, []).append(record)
            if (slot := (known or {}).get(record)) is not None:
                slots[record.kind, record.name] = slot
            elif record.state.usable and KINDS[record.kind].when is not When.NEVER:
                slots[record.kind, record.name] = self._make_slot(record, named[record.name] == 1)
        self.slots = slots

    def names(self, kind: str, *, broken: bool = False) -> tuple[str, ...]:
        """See ``PluginHost.names``."""
        found = self._of_kind.get(kind, ())
        # A name in conflict has several records.
        return tuple(dict.fromkeys(one.name for one in found if one.state.usable or (broken and one.state.broken)))

    def named(self, name: str, kind: str | None) -> tuple[PluginRecord, ...]:
        """See ``PluginHost.why``."""
        if kind is None and "." in name:
            kind, _, name = name.partition(".")
        found = tuple(record for record in self.records if record.name == name and kind in {None, record.kind})
        if not found:
            known = {record.name for record in self.records if kind in {None, record.kind}}
            provides = [record.label for record in self.records if kind is None and record.distribution == name]
            raise PluginNotFound(kind or "plugin", name, known=sorted(known), provides=provides)
        return found

    def active(self, kind: str, name: str) -> LoadedPlugin | None:
        """Return a plugin if it is active."""
        slot = self.slots.get((kind, name))
        return slot.active if slot is not None and slot.record.state is State.ACTIVE else None

    def uses(self, packages: Collection[str]) -> bool:
        """Return whether a plugin of one of these top-level packages was imported, or passed as an object."""
        loaded = [slot.examined.answer for slot in self.slots.values()]
        return any(_module(one).partition(".")[0] in packages for one in loaded if one is not None)


open_tables: WeakSet[PluginTable] = WeakSet()
"""The tables of all plugin hosts of this process that are open."""


def _module(plugin: LoadedPlugin) -> str:
    if plugin.record.value:
        return module_of(plugin.record.value)
    value = plugin.value
    return value.__name__ if isinstance(value, ModuleType) else str(getattr(value, "__module__", ""))
