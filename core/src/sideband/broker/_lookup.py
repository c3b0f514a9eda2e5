"""Look up ops, their plugins, and the capabilities of their families."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

from attrs import frozen

from ..contexts._editions import Edition
from ..ops import Capability, CapabilityInvalid, Grant, Level, OpFamily, OpNotFound, OpSpec, OpUnavailable, reach
from ..plugins import LoadedPlugin, PluginContext, PluginError, PluginHost, PluginNotFound, PluginRecord
from ..plugins._bare_context import BareContext
from ..providers import Provider
from ..suggestions import closest, did_you_mean

OWN_OPS = frozenset({"agent.child", "skill.begin", "skill.call", "tool.call"})
"""The ops of the host itself. They cannot be looked up, so a lost one cannot be reconciled."""

ANSWER_OP = "approval.answer"
"""The name under which answers to questions are recorded. It is not an op."""

_MAX_GRANTS = 1_024


@frozen
class BoundOp:
    """An op together with the plugin that provides it.

    Attributes:
        spec: the op.
        family: the family of the op.
        plugin: the plugin.
        replayed: whether a cassette has its answers. The handler of one that only dispatches others runs in a replay
            too, and the cassette has the answers of those.
    """

    spec: OpSpec
    family: OpFamily
    plugin: LoadedPlugin
    replayed: bool = True

    @classmethod
    def own(cls, spec: OpSpec, *, plugin: str, replayed: bool = True) -> Self:
        """Return an op that a program defines itself, without a plugin. It cannot be dispatched by name.

        Args:
            spec: the op.
            plugin: the plugin name for its errors.
            replayed: see above.

        Example:
            >>> async def run(broker, call):
            ...     return await broker.dispatch(call, say.name, {"text": "hello"}, own=BoundOp.own(say, plugin="mine"))
        """
        family = OpFamily(spec.family, (spec,))
        context = BareContext(plugin, config=None, home=Path())
        loaded = LoadedPlugin(PluginRecord("op", plugin), None, family, None, context)
        return cls(spec, family, loaded, replayed)


class Ops:
    """The ops of all installed families. The package of a family is imported when one of its ops is first used."""

    def __init__(self, plugins: PluginHost) -> None:
        self._plugins = plugins
        self.editions = plugins.hooks.editions
        self._grants: dict[tuple[str, ...], Grant] = {}

    async def get(self, op: str, edition: Edition | None = None) -> BoundOp:
        """Return the op with that name.

        Args:
            op: the name of the op.
            edition: the edition of plugins to look it up in; ``None`` for the current one.

        Raises:
            OpNotFound: if the op does not exist.
            OpUnavailable: if its plugin cannot be loaded. The message states the reason.
        """
        edition = edition or self.editions.current
        bound: BoundOp | None = edition.ops.get(op)
        if bound is not None:
            return bound
        family = op.partition(".")[0]
        try:
            plugin = await self.plugin(family)
        except PluginNotFound:
            family = closest(family, self._plugins.names("op")) or family
            known: list[str] = []
            with suppress(PluginError):  # only its names are needed
                known = [spec.name for spec in (await self.plugin(family)).contribution.public_ops]
            raise OpNotFound(op, known=known) from None
        except PluginError as error:
            raise OpUnavailable(op, error) from error
        _bind(plugin, edition)
        if op not in edition.ops:
            raise OpNotFound(op, known=[spec.name for spec in plugin.contribution.public_ops])
        return edition.ops[op]  # type: ignore[no-any-return]  # it contains bound ops

    def is_fire_and_forget(self, op: str, edition: Edition | None = None) -> bool:
        """Return whether an op has no answer. Only families that are loaded are known; those of a call always are."""
        bound: BoundOp | None = (edition or self.editions.current).ops.get(op)
        return bound is not None and bound.spec.fire_and_forget

    def renew(self, replaced: Edition) -> None:
        """Look up the ops again that were used in the edition that a reload has replaced."""
        self._grants.clear()  # they are of classes of the replaced plugins
        for family in {bound.family.name for bound in replaced.ops.values()}:
            if (plugin := self._plugins.active("op", family)) is not None:
                _bind(plugin, self.editions.current)

    async def plugin(self, family: str) -> LoadedPlugin:
        """Return the plugin of that family.

        Raises:
            PluginError: if the plugin cannot be loaded.
        """
        plugin = await self._plugins.ensure_family(family)
        _bind(plugin, self.editions.current)
        return plugin

    async def provider(self, name: str) -> tuple[Provider, PluginContext]:
        """Return the model provider with that name, and its plugin's context.

        Raises:
            PluginError: if the plugin cannot be loaded.
        """
        is_entry = "-" not in name or name in self._plugins.names("provider", broken=True)
        entry = name if is_entry else name.partition("-")[0]
        plugin = await self._plugins.load("provider", entry)
        for provider in plugin.contribution:
            if provider.name == name:
                return provider, plugin.context
        raise PluginNotFound("provider", name, known=[provider.name for provider in plugin.contribution])

    async def providers(self) -> tuple[str, ...]:
        """Return the names of all providers, sorted. A plugin that cannot be loaded is listed by its own name."""
        found: list[str] = []
        for name in self._plugins.names("provider", broken=True):
            try:
                found += [provider.name for provider in (await self._plugins.load("provider", name)).contribution]
            except PluginError:
                found.append(name)
        return tuple(sorted(found))

    async def grant(self, texts: Iterable[str]) -> Grant:
        """Parse capabilities, validate them against their families, and fill in the families' defaults.

        Raises:
            CapabilityInvalid: if a capability is malformed, or has an unknown family or field.
            PluginError: if the plugin of a family cannot be loaded.
        """
        if isinstance(texts, str):
            raise CapabilityInvalid(texts, "expected a list of capabilities, got a text")
        written = tuple(texts)
        if (known := self._grants.get(written)) is not None:
            return known
        grant = Grant.of([await self._fit(Capability.parse(text)) for text in written])
        if len(self._grants) >= _MAX_GRANTS:
            self._grants.clear()
        self._grants[written] = grant
        return grant

    async def available(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Return the capabilities whose families are installed and can be loaded.

        Raises:
            CapabilityInvalid: if a capability is malformed.
        """
        found = []
        for text in texts:
            with suppress(PluginError):
                await self.plugin(Capability.parse(text).family)
                found.append(text)
        return tuple(found)

    async def reach(self, grant: Grant) -> Level:
        """Return the highest level of the effects that a grant allows, through the ops of its families.

        Args:
            grant: a grant from ``grant``.

        Raises:
            PluginError: if the plugin of a family cannot be loaded.
        """
        plugins = [await self.plugin(family) for family in grant.families()]
        return reach([spec for plugin in plugins for spec in plugin.contribution.ops], grant)

    async def _fit(self, capability: Capability) -> Capability:
        try:
            plugin = await self.plugin(capability.family)
        except PluginNotFound:
            suggestion = did_you_mean(capability.family, self._plugins.names("op"))
            error = CapabilityInvalid(str(capability), f"unknown op family `{capability.family}`{suggestion}")
            error.hint = f"correct the name, or install the package that provides `{capability.family}`"
            raise error from None
        return capability.fit(plugin.contribution.scope)


def _bind(plugin: LoadedPlugin, edition: Edition) -> None:
    for spec in plugin.contribution.ops:
        edition.ops.setdefault(spec.name, BoundOp(spec, plugin.contribution, plugin))
