"""The context of a plugin's lifespan and hooks within a host."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from ..broker import Attempt, Broker, Call, CallProgress, Redaction, check_egress
from ..contexts import Lease
from ..hooks import HookRegistry
from ..messages import JsonPieces
from ..ops import ContextRevoked, Credential, Grant, Origin
from ..store import Store, StorePart
from ._own_calls import own_call

_NO_ORIGIN = Origin()


@define(eq=False)
class HostPluginContext:
    """The ``PluginContext`` of a host. Its effects pass the broker like all others, with the plugin as their origin.

    Attributes:
        lease: the time for which it may be used; ``None`` for that of the plugin itself, which lasts like its lifespan.
    """

    plugin: str
    config: Any
    home: Path
    _broker: Callable[[], Broker] = field(repr=False)
    _rights: Callable[[], Grant] = field(repr=False)
    _redactor: Redaction = field(repr=False)
    _store: Callable[[], Store] = field(repr=False)
    state: Any = None
    principal: str = "user"
    lease: Lease | None = field(default=None, repr=False)

    def leased(self, lease: Lease) -> HostPluginContext:
        """Return a context like this one with a lease, for one dispatch of a hook."""
        own = (self.plugin, self.config, self.home, self._broker, self._rights, self._redactor, self._store)
        return HostPluginContext(*own, self.state, self.principal, lease)

    @property
    def store(self) -> Store:
        """See ``EffectContext.store``."""
        return StorePart.of_plugin(self._store, self.plugin)

    async def dispatch(
        self,
        op: str,
        params: Mapping[str, Any],
        *,
        capabilities: Iterable[str] | None = None,
        key: str | None = None,
    ) -> Any:
        """See ``PluginContext.dispatch``."""
        return await self.dispatch_for(_NO_ORIGIN, op, params, capabilities=capabilities, key=key, lease=self.lease)

    async def dispatch_for(
        self,
        origin: Origin,
        op: str,
        params: Mapping[str, Any],
        *,
        capabilities: Iterable[str] | None = None,
        key: str | None = None,
        hooks: HookRegistry | None = None,
        progress: CallProgress | None = None,
        on_answer: Callable[[str, str, Any], Awaitable[None]] | None = None,
        attempt: Attempt | None = None,
        lease: Lease | None = None,
    ) -> Any:
        """Dispatch an op for an agent: with its session, run and step in the record, and with its guards."""
        broker = self._broker()
        grant = self._rights() if capabilities is None else await broker.ops.grant(capabilities)
        async with self._call(broker, grant, origin) as call:
            call.hooks, call.progress, call.on_answer, call.attempt = hooks, progress, on_answer, attempt
            call.outer = lease
            return await broker.dispatch(call, op, params, key=key)

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
