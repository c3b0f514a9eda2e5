"""The context of a plugin's lifespan and hooks within a host."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from ..broker import Attempt, Broker, Call, CallProgress, Redaction, check_egress
from ..broker._dispatch import RightsOwner
from ..contexts import Lease, SkillUses
from ..hooks import HookRegistry
from ..messages import JsonPieces
from ..ops import ContextRevoked, Credential, Grant, Origin
from ..plugins import PluginRecord
from ..store import Store, StorePart
from ._own_calls import own_call

_NO_ORIGIN = Origin()


@define(eq=False)
class HostPluginContext:
    """The ``PluginContext`` of a host. Its effects pass the broker like all others, with the plugin as their origin.

    Attributes:
        plugin: the name of the plugin.
        config: the configuration of the plugin: an instance of its ``Config``.
        home: the state folder of the host.
        state: what the lifespan of the plugin yielded.
        principal: the principal of the host.
        lease: the time for which it may be used; ``None`` for that of the plugin itself, which lasts like its lifespan.
    """

    plugin: str
    config: Any
    home: Path
    _broker: Callable[[], Broker] = field(repr=False)
    _rights: Callable[[], Grant] = field(repr=False)
    _redactor: Redaction = field(repr=False)
    _store: Callable[[], Store] = field(repr=False)
    _record: PluginRecord | None = field(default=None, repr=False)
    state: Any = None
    principal: str = "user"
    lease: Lease | None = field(default=None, repr=False)

    def leased(self, lease: Lease) -> HostPluginContext:
        """Return a context like this one with a lease, for one dispatch of a hook."""
        own = (self.plugin, self.config, self.home, self._broker, self._rights, self._redactor, self._store)
        return HostPluginContext(*own, self._record, self.state, self.principal, lease)

    @property
    def store(self) -> Store:
        """See ``EffectContext.store``."""
        return StorePart.of_plugin(self._store, self.plugin)

    def now(self) -> datetime:
        """See ``EffectContext.now``."""
        return self._broker().now()

    async def dispatch(
        self,
        op: str,
        params: Mapping[str, Any],
        *,
        capabilities: Iterable[str] | None = None,
        key: str | None = None,
        uses: Iterable[str] | None = None,
    ) -> Any:
        """See ``PluginContext.dispatch``."""
        return await self.dispatch_for(
            _NO_ORIGIN, op, params, capabilities=capabilities, key=key, uses=uses, lease=self.lease
        )

    async def dispatch_for(
        self,
        origin: Origin,
        op: str,
        params: Mapping[str, Any],
        *,
        capabilities: Iterable[str] | None = None,
        key: str | None = None,
        uses: Iterable[str] | None = None,
        hooks: HookRegistry | None = None,
        progress: CallProgress | None = None,
        on_answer: Callable[[str, str, Any], Awaitable[None]] | None = None,
        attempt: Attempt | None = None,
        lease: Lease | None = None,
    ) -> Any:
        """Dispatch an op for an agent: with its session, run and step in the record, and with its guards."""
        broker = self._broker()
        grant = self._rights() if capabilities is None else await broker.ops.grant(capabilities)
        owner = None if uses is None else await self._owner(uses)
        if owner is not None:
            declared = await broker.ops.grant(owner.uses)
            grant = declared if capabilities is None else declared.narrow(grant)
        async with self._call(broker, grant, origin) as call:
            call.hooks, call.progress, call.on_answer, call.attempt = hooks, progress, on_answer, attempt
            call.outer = lease
            return await broker.dispatch(call, op, params, key=key, owner=owner)

    async def is_granted(self, uses: SkillUses) -> bool:
        """See ``PluginContext.is_granted``."""
        return await self.is_granted_for(_NO_ORIGIN, uses)

    async def is_granted_for(self, origin: Origin, uses: SkillUses) -> bool:
        """Return the same for an agent, whose session may have a grant of its own."""
        origin = evolve(origin, principal=self.principal, plugin=self.plugin)
        return await self._broker().own_rights.holds(await self._owner(uses), origin)

    async def _owner(self, uses: Iterable[str]) -> RightsOwner:
        if self._record is None:
            raise TypeError(f"`uses`: `{self.plugin}` is not a plugin to which rights can be given")
        if isinstance(uses, str):
            raise TypeError(f"`uses`: expected a list of capabilities, got a text: write [{uses!r}]")
        if isinstance(uses, SkillUses):
            return RightsOwner(self._record, tuple(uses), uses)
        # Rights to ops that are not installed are not asked for.
        return RightsOwner(self._record, await self._broker().ops.available(uses))

    async def credential(self, handle: str, audience: str) -> Credential:
        """See ``PluginContext.credential``."""
        if self.lease is not None and self.lease.is_over():
            raise ContextRevoked(self.plugin)
        broker = self._broker()
        plugin = await broker.ops.plugin("secrets")
        async with self._call(broker, self._rights()) as call:
            context = broker.context(plugin, call, op=self.plugin, effect=call.id, deadline=call.deadline)
            return await context.credential(handle, audience)

    def protect(self, value: str | bytes, name: str = "secret", *, origins: Iterable[str] = ()) -> None:
        """See ``PluginContext.protect``."""
        self._redactor.protect(value, name, origins=origins)

    def check_egress(self, audience: str | None, parts: Mapping[str, str | bytes | JsonPieces]) -> None:
        """See ``PluginContext.check_egress``."""
        self._broker().sources.check(self.plugin)
        check_egress(self._redactor, self.plugin, audience, parts)

    def _call(self, broker: Broker, grant: Grant, origin: Origin = _NO_ORIGIN) -> AbstractAsyncContextManager[Call]:
        origin = evolve(origin, principal=self.principal, plugin=self.plugin)
        return own_call(grant, f"plugin:{self.plugin}", origin, _ignore, editions=broker.ops.editions)


def _ignore(error: Exception) -> None:
    """Ignore an exception raised while closing: the op that raised it reports it."""
