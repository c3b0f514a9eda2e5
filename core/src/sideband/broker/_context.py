"""The context that a dispatch passes to its handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from anyio.lowlevel import checkpoint
from attrs import define, evolve, field, frozen
from pydantic_core import to_json

from ..blobs import BlobStore
from ..contexts import Lease, RedactedText, SkillTool, ToolRights, ToolState
from ..hooks import HookRegistry, TraceParent
from ..messages import JsonPieces
from ..ops import (
    Capability,
    ContextRevoked,
    Credential,
    CredentialResolver,
    EgressRefused,
    Grant,
    OpDenied,
    Origin,
    Scope,
)
from ..plugins import LoadedPlugin, PluginContext
from ..providers import Provider
from ..sandboxing import ProgramProcess, ProgramRequest
from ..store import Store
from ._call import Call
from ._dispatch import RightsOwner
from ._egress import check_egress
from ._gate import check_scopes
from ._lookup import Ops
from ._redaction import Redaction
from ._secret_sources import SecretSources
from ._streams import PartRedaction, TextRedaction

StartProgram = Callable[[ProgramRequest], Awaitable[ProgramProcess]]
"""Start a program with the isolation that the host requires."""

_MAX_NOTE = 65_536
_REPORT = "progress.report"


@frozen
class CredentialScope(Scope, family="secrets"):
    """The scope that the grant must allow to resolve a credential, independent of the package that stores it."""

    name: str | None = None
    mode: str | None = None


class NestedCalls(Protocol):
    """Calls the tools of skills for ops."""

    async def tools(self) -> Sequence[SkillTool]:
        """See ``SkillContext.tools``."""

    async def state(self, tool: str) -> ToolState:
        """See ``SkillContext.tool_state``."""

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        call: Call,
        parent: DispatchContext,
        limit: Grant | None,
    ) -> Any:
        """Call a tool.

        Args:
            tool: ``skill.tool``.
            arguments: its arguments.
            call: the call of the op.
            parent: the context of the op.
            limit: what the rights of the skill are narrowed to; ``None`` for all of them.
        """


class Seam(Protocol):
    """The part of the broker that a context uses."""

    ops: Ops
    redactor: Redaction
    blobs: BlobStore
    launch: StartProgram
    hooks: HookRegistry
    sources: SecretSources
    clock: Callable[[], float]

    def now(self) -> datetime:
        """Return the time, as ``EffectContext.now``."""

    nested: NestedCalls | None

    async def record_note(self, effect: str, op: str, note: Mapping[str, Any]) -> None:
        """Record a note about a running effect."""

    async def dispatch(
        self,
        call: Call,
        op: str,
        params: Mapping[str, Any],
        *,
        key: str | None = None,
        grant: Grant | None = None,
        parent: DispatchContext | None = None,
        owner: RightsOwner | None = None,
    ) -> Any:
        """Run one op for ``call``."""


@define(eq=False)
class DispatchContext:
    """The ``OpContext`` of one dispatch, which is its lease too. It is unusable after the dispatch has ended.

    Attributes:
        owner: the plugin whose code uses the context.
        key: the idempotency key of the effect.
        used: the capabilities that the dispatch and its child effects have used.
        ended: whether the dispatch has ended.
        parts: the redaction of emitted parts, if there were any. It may hold back text for ``emit_rest``.
    """

    op: str
    effect: str
    deadline: float
    home: Path
    owner: LoadedPlugin
    _call: Call = field(repr=False)
    _grant: Grant = field(repr=False)
    _seam: Seam = field(repr=False)
    _note: dict[str, Any] | None = field(default=None, repr=False)
    used: set[Capability] = field(factory=set, repr=False)
    _outer: Lease | None = field(default=None, repr=False)
    _within: str | None = field(default=None, repr=False)
    key: str | None = None
    ended: bool = field(default=False, init=False, repr=False)
    parts: PartRedaction | None = field(default=None, init=False, repr=False)

    @property
    def plugin(self) -> str:
        """The name of the plugin."""
        return self.owner.record.name

    @property
    def config(self) -> Any:
        """See ``EffectContext.config``."""
        return self.owner.config

    @property
    def state(self) -> Any:
        """See ``EffectContext.state``."""
        return self.owner.context.state

    @property
    def blobs(self) -> BlobStore:
        """The host's blob store."""
        return self._seam.blobs

    @property
    def store(self) -> Store:
        """See ``EffectContext.store``."""
        return self.owner.context.store

    @property
    def call(self) -> str:
        """The id of the call."""
        return self._call.id

    @property
    def domain(self) -> str:
        """The domain of the call. Calls of the same domain may share resources."""
        return self._call.domain

    @property
    def holder(self) -> str:
        """See ``SkillContext.holder``."""
        return self._call.holder

    @property
    def principal(self) -> str:
        """The principal of the call."""
        return self._call.origin.principal

    @property
    def origin(self) -> Origin:
        """The origin of the call."""
        return self._call.origin

    def now(self) -> datetime:
        """See ``EffectContext.now``."""
        return self._seam.now()

    def end(self) -> None:
        """Revoke the context, so that tasks that outlive the handler cannot use it."""
        self.ended = True

    def is_over(self) -> bool:
        """See ``Lease``. A handler that is past its deadline may still record what it has done."""
        # An effect may outlive the one that caused it, but not its deadline while that one waits for it.
        outer = self._outer
        is_late = isinstance(outer, DispatchContext) and not outer.ended and outer.is_over()
        return is_late or self.ended or self._seam.clock() >= self.deadline or self._call.is_over()

    def _check_alive(self, *, over: bool = False) -> None:
        if self.ended or over:
            raise ContextRevoked(self.op)

    def require(self, *scopes: Scope) -> None:
        """See ``OpContext.require``."""
        self._check_alive()
        self.used.update(check_scopes(self._grant, self.op, scopes, known_later=False))

    def allows(self, scope: Scope) -> bool:
        """See ``OpContext.allows``."""
        self._check_alive()
        return self._grant.match(scope.family, scope.fields(), known_later=scope.known_later) is not None

    async def progress(
        self,
        *,
        current: float | None = None,
        total: float | None = None,
        message: str | None = None,
        unit: str | None = None,
    ) -> None:
        """See ``OpContext.progress``."""
        if self._call.progress is not None and not self.ended:
            self._call.reported += self.op == _REPORT
            self._call.progress.report(self.op, current=current, total=total, message=message, unit=unit)

    async def emit(self, part: Mapping[str, Any]) -> None:
        """See ``OpContext.emit``."""
        if self._call.on_part is None or self.ended:
            return
        if self.parts is None:
            self.parts = PartRedaction(self._seam.redactor)
        await self._hand_on(self.parts.feed(part))

    async def emit_rest(self) -> None:
        """Emit the text that was held back for redaction, after the last part."""
        if self.parts is not None:
            await self._hand_on(self.parts.end())

    async def _hand_on(self, parts: Iterable[Mapping[str, Any]]) -> None:
        assert self._call.on_part is not None  # noqa: S101  `emit` checks it
        for number, part in enumerate(parts):
            if number:
                await checkpoint()  # a long part is split, and must not delay other tasks
            await self._call.on_part(part)

    async def note(self, data: Mapping[str, Any]) -> None:
        """See ``OpContext.note``."""
        self._check_alive()
        if self._note is None:
            raise OpDenied(self.op, "notes require a running effect", hint="call `note` in the op's handler")
        added = self._seam.redactor.data(data)
        if len(to_json({**self._note, **added})) > _MAX_NOTE:
            raise ValueError(f"notes exceed the limit of {_MAX_NOTE:,} bytes; store larger data in a blob")
        self._note.update(added)
        await self._seam.record_note(self.effect, self.op, self._note)

    async def trace_parent(self) -> str | None:
        """See ``OpContext.trace_parent``."""
        self._check_alive()
        hooks = self._call.hooks or self._seam.hooks
        if not hooks.has(TraceParent.hook):
            return None
        event = TraceParent(self.effect, self.op, self.origin, self.call, self._within)
        return next((found.value for found in await hooks.collect(event)), None)

    async def launch(self, request: ProgramRequest) -> ProgramProcess:
        """See ``OpContext.launch``."""
        self._check_alive(over=self.is_over())
        return await self._seam.launch(request)

    async def provider(self, name: str) -> tuple[Provider, PluginContext]:
        """See ``ModelContext.provider``."""
        return await self._seam.ops.provider(name)

    async def providers(self) -> Sequence[str]:
        """See ``ModelContext.providers``."""
        return await self._seam.ops.providers()

    async def tools(self) -> Sequence[SkillTool]:
        """See ``SkillContext.tools``."""
        return await self._nested.tools()

    async def tool_state(self, tool: str) -> ToolState:
        """See ``SkillContext.tool_state``."""
        return await self._nested.state(tool)

    async def call_tool(self, tool: str, arguments: Mapping[str, Any], *, rights: ToolRights) -> Any:
        """See ``SkillContext.call_tool``."""
        if rights not in ("caller", "skill"):
            raise ValueError(f"`rights`: expected `caller` or `skill`, got {rights!r}")
        limit = self._grant if rights == "caller" else None
        return await self._nested.call(tool, arguments, call=self._call, parent=self, limit=limit)

    @property
    def _nested(self) -> NestedCalls:
        self._check_alive(over=self.is_over())
        if self._seam.nested is None:
            raise OpDenied(self.op, "tools can be called while the host is open only")
        return self._seam.nested

    async def dispatch(
        self,
        op: str,
        params: Mapping[str, Any],
        *,
        capabilities: Iterable[str] | None = None,
        key: str | None = None,
        rights: Literal["caller", "own"] = "caller",
    ) -> Any:
        """See ``OpContext.dispatch``."""
        if rights not in ("caller", "own"):
            raise ValueError(f"`rights`: expected `caller` or `own`, got {rights!r}")
        uses = self.owner.contribution.uses if rights == "own" else ()
        owner = RightsOwner(self.owner.record, tuple(uses)) if rights == "own" else None
        grant = self._grant if owner is None else await self._seam.ops.grant(owner.uses)
        if capabilities is not None:
            grant = grant.narrow(await self._seam.ops.grant(capabilities))
        return await self._seam.dispatch(self._call, op, params, key=key, grant=grant, parent=self, owner=owner)

    async def credential(self, handle: str, audience: str) -> Credential:
        """See ``OpContext.credential``."""
        self._check_alive(over=self.is_over())
        self.require(CredentialScope(name=handle, mode="use"))
        plugin = await self._seam.ops.plugin(CredentialScope.family)
        resolver: CredentialResolver | None = plugin.contribution.credentials
        if resolver is None:
            raise OpDenied(self.op, f"the family `{CredentialScope.family}` does not support credentials")
        its_own = evolve(self, owner=plugin)
        try:
            credential = await resolver.resolve(handle, audience, its_own)
        finally:
            its_own.end()
        for value in (credential.value, *credential.headers.values()):
            self._seam.redactor.protect(value, handle, origins=(audience, *credential.origins))
        return credential

    def protect(self, value: str | bytes, name: str = "secret", *, origins: Iterable[str] = ()) -> None:
        """See ``OpContext.protect``."""
        self._seam.redactor.protect(value, name, origins=origins)

    def check_egress(self, audience: str | None, parts: Mapping[str, str | bytes | JsonPieces]) -> None:
        """See ``EffectContext.check_egress``."""
        self._seam.sources.check(self.op)
        check_egress(self._seam.redactor, self.op, audience, parts)

    def check_cut(self, before: bytes, after: bytes) -> None:
        """See ``OpContext.check_cut``."""
        name = self._seam.redactor.cut(before, after)
        if name is not None:
            raise EgressRefused(self.op, name, "requested range, which begins or ends inside a secret,", None)

    def on_call_end(self, close: Callable[[], Awaitable[None]]) -> None:
        """See ``OpContext.on_call_end``."""
        self._check_alive()
        self._call.on_end(close)

    def on_session_end(self, close: Callable[[], Awaitable[None]]) -> None:
        """See ``OpContext.on_session_end``."""
        self._check_alive()
        session, hooks = self.origin.session, self._call.hooks
        ends = hooks.session_ends if hooks is not None else None
        if session is None or ends is None:
            self._call.on_end(close)
        else:
            ends.add(session, close)

    def redacted_text(self) -> RedactedText:
        """See ``OpContext.redacted_text``."""
        return TextRedaction(self._seam.redactor)
