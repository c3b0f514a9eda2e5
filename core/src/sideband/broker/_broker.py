"""The broker: every effect of every skill, tool and plugin passes through ``Broker.dispatch``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio import get_cancelled_exc_class
from attrs import define, evolve, field

from ..approvals import Approvals, Approver
from ..blobs import BlobStore
from ..contexts import Lease
from ..hooks import HookRegistry, OpCall
from ..ledger import Ledger
from ..ops import (
    Capability,
    Grant,
    Level,
    LimitExceeded,
    OpCancelled,
    OpError,
    OpResultInvalid,
    OpSpec,
    OpTimeout,
    Origin,
    reach,
)
from ..plugins import LoadedPlugin
from ._attempts import Attempts
from ._call import Call
from ._claims import Claims, Replay
from ._clock import running_clock
from ._context import DispatchContext, NestedCalls, StartProgram
from ._decisions import decisions_as_data, enforce
from ._dispatch import Dispatch, RightsOwner
from ._gate import OwnRights, check_grant, check_level, check_own_grant, level_with
from ._handlers import run_handler
from ._lookup import BoundOp, Ops
from ._recorder import EffectRecorder
from ._redaction import Redaction
from ._secret_sources import SecretSources
from ._values import has_at_most, parse_params, payload_of, plain_result, recordable

if TYPE_CHECKING:
    from ._tape import EffectTape

_log = logging.getLogger("sideband.broker")

_DEFAULT_TIMEOUT = 60.0
_PREVIEW_SECONDS = 20.0
_MAX_DEPTH = 8
# The nesting depth of the current dispatch, including dispatches made by hooks and lifespans.
_depth: ContextVar[int] = ContextVar("sideband_dispatch_depth", default=0)


@define(eq=False, repr=False, kw_only=True)
class Broker:
    """The broker of a host, which looks up, authorizes, runs, redacts and records ops.

    Attributes:
        ops: the ops of the installed families.
        redactor: the known secrets and the patterns of plugins.
        blobs: the large binary data of the host.
        launch: starts a program in the isolation of the host.
        sources: the sources of secrets.
        approvals: the stored requests for approval and their answers.
        own_rights: the rights that plugins were given.
        hooks: the hooks that decide about and observe effects, unless their call has its own.
        nested: runs calls of skills that an op makes, such as ``services.call``.
        attempts: the attempts of calls whose effects are answered from the record.
        tape: the cassette of the host, if any.
        clock: the clock of anyio.
    """

    ops: Ops
    redactor: Redaction
    blobs: BlobStore
    launch: StartProgram
    sources: SecretSources
    approvals: Approvals
    own_rights: OwnRights
    hooks: HookRegistry
    nested: NestedCalls | None = None
    _ledger: Ledger
    _claims: Claims
    _home: Path
    _approver: Approver | None = None
    tape: EffectTape | None = None
    attempts: Attempts = field(init=False)
    _recorder: EffectRecorder = field(init=False)
    clock: Callable[[], float] = field(factory=running_clock, init=False)

    def __attrs_post_init__(self) -> None:
        self.attempts = Attempts(self._ledger, self._home / "replays")
        self._recorder = EffectRecorder(self._ledger, self._claims, self.redactor, self.hooks, self.attempts)

    def now(self) -> datetime:
        """Return the time, as ``EffectContext.now``."""
        return datetime.now().astimezone() if self.tape is None else self.tape.now()

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
        own: BoundOp | None = None,
        decisions: Sequence[Mapping[str, Any]] = (),
        note: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run one op for ``call``, and return its result as plain data.

        Args:
            call: the call that dispatches the op.
            op: the name of the op.
            params: the parameters of the op.
            key: an idempotency key. An effect with this key happens at most once, and its result is stored.
            grant: a narrower grant than that of the call, for a child effect.
            parent: the context of the op that dispatches a child effect. If it was revoked, the effect is refused.
            owner: the plugin whose own rights it gets, narrowed to ``grant``, instead of those of the call.
            own: an op of the host itself, which cannot be dispatched by name.
            decisions: decisions made before the dispatch. They are recorded together with those made here.
            note: data that is added to its record, instead of the note of the call.

        Raises:
            OpError: if the op failed. ``OpDenied`` means that it was not authorized and not executed.
            LedgerError: if the intent could not be recorded. The op was not executed.
        """
        dispatch = Dispatch(
            call=call,
            op=op,
            effect=self._ledger.new_effect_id(),
            grant=call.grant if grant is None else grant,
            origin=call.origin if parent is None else evolve(call.origin, plugin=parent.plugin),
            key=key,
            bound=own,
            decisions=self.redactor.data(decisions) if decisions else [],
            within=None if parent is None else parent.effect,
            lease=parent or call.outer,
            owner=owner,
            edition=self.ops.editions.enter(None if call.ended else call.edition),
        )
        if note is not None:
            dispatch.note = dict(note)
        outer = _depth.set(_depth.get() + 1)
        try:
            return await self._dispatch(dispatch, params)
        finally:
            _depth.reset(outer)
            dispatch.leave(parent.used if parent else None)
            if dispatch.reserved:
                await dispatch.give_back()

    async def _dispatch(self, dispatch: Dispatch, params: Mapping[str, Any]) -> Any:
        try:
            tape = self.tape if self.tape is not None and self.tape.takes(dispatch) else None
            spec = await self._look_up(dispatch)
            self._validate(dispatch, spec, params)
            dispatch.check_lease()
            await self._check_rights(dispatch)
            replay = None if dispatch.call.attempt is None else await self._recorder.recall(dispatch)
            await self._decide(dispatch, spec)
            if tape is not None and (handler := tape.find(dispatch)) is not None:
                dispatch.answer_with(handler, self.redactor.text(tape.name))
                replay, tape = None, None
        except BaseException as raised:
            if (error := await self._recorder.refusal(dispatch, raised)) is not raised:
                raise error from None
            raise
        running = self._cause(dispatch, spec, replay)
        return await (running if tape is None else tape.record(dispatch, running))

    async def _cause(self, dispatch: Dispatch, spec: OpSpec, replay: Replay | None) -> Any:
        """Cause an effect that may happen, unless its record has the answer."""
        if (replay := replay or await self._recorder.intend(dispatch)) is not None:
            return await self._recorder.answer(dispatch, replay)
        return await self._run(dispatch, spec)

    async def recall(self, key: str) -> tuple[str, Any] | None:
        """Return the outcome of the effect with this key: ``done`` and its result, ``unknown``, or ``None``.

        ``None`` means that no effect of the user, rather than of another principal, happened with this key.
        """
        found = await self._claims.recall(key)
        return found and (found[0], self.redactor.data(found[1], sensitive_keys=False))

    async def record_refusal(self, op: str, origin: Origin, code: str, message: str) -> None:
        """Record a request of a worker that was rejected before it became a dispatch."""
        await self._recorder.refuse_worker(op, origin, code, message)

    async def refuse(
        self,
        call: Call,
        own: BoundOp,
        params: Mapping[str, Any],
        error: OpError,
        *,
        decisions: Sequence[Mapping[str, Any]] = (),
    ) -> str:
        """Record and report an op that was refused before it became a dispatch, and return its effect id.

        Raises:
            LedgerError: if it could not be recorded.
        """
        dispatch = Dispatch(
            call=call,
            op=own.spec.name,
            effect=self._ledger.new_effect_id(),
            bound=own,
            decisions=self.redactor.data(decisions),
        )
        if has_at_most(call.most_values, params):
            dispatch.recorded = recordable(self.redactor, params, own.spec.record)
        await self._recorder.refuse(dispatch, error)
        return dispatch.effect

    async def _look_up(self, dispatch: Dispatch) -> OpSpec:
        if _depth.get() > _MAX_DEPTH:
            raise LimitExceeded("nested_dispatches", _MAX_DEPTH, op=dispatch.op)
        if dispatch.bound is None:
            dispatch.bound = await self.ops.get(dispatch.op, dispatch.edition)
        return dispatch.bound.spec

    def _validate(self, dispatch: Dispatch, spec: OpSpec, params: Mapping[str, Any]) -> None:
        if not has_at_most(dispatch.call.most_values, params):
            raise LimitExceeded("params", dispatch.call.most_values, op=dispatch.op)
        params = spec.filled(params, dispatch.origin)
        try:
            dispatch.params = parse_params(spec, params)
            shown = dispatch.params.model_dump(include=set(params).intersection(spec.record))
        except BaseException:
            dispatch.recorded = recordable(self.redactor, params, spec.record)
            raise
        dispatch.recorded = recordable(self.redactor, {**dict.fromkeys(params), **shown}, spec.record)

    async def _check_rights(self, dispatch: Dispatch) -> None:
        if dispatch.owner is None:
            check_grant(dispatch)
        else:
            await check_own_grant(dispatch, self.own_rights, dispatch.owner)
        requires, family = dispatch.found.spec.requires, dispatch.found.family.name
        if requires != family and requires is not None and dispatch.origin.skill is not None:
            check_level(dispatch, reach((await self.ops.plugin(requires)).contribution.ops, dispatch.grant))

    async def _decide(self, dispatch: Dispatch, spec: OpSpec) -> None:
        hooks = dispatch.call.hooks or self.hooks
        if dispatch.decided or not hooks.has("op_call", dispatch.level):
            return
        replays = self.tape is not None and self.tape.replays  # so that nothing of the op runs
        event = OpCall(
            effect=dispatch.effect,
            op=dispatch.op,
            params=payload_of(dispatch.valid),
            level=dispatch.level or Level.SAFE,
            origin=dispatch.origin,
            grant=dispatch.grant.texts(),
            idempotent=spec.idempotent,
            indirect=spec.indirect,
            within=dispatch.within,
            key=dispatch.key,
            preview=partial(self._preview, dispatch) if spec.preview and not replays else None,
            egress=dispatch.leaves_machine(dispatch.valid),
            level_of=(lambda params: level_with(dispatch, parse_params(spec, params))) if spec.lower else None,
            egress_of=(lambda params: dispatch.leaves_machine(parse_params(spec, params))) if spec.varies else None,
            reserved=dispatch.reserved,
        )

        def validate(params: Mapping[str, Any]) -> Mapping[str, Any]:
            return parse_params(spec, spec.filled(params, dispatch.origin)).model_dump(exclude_unset=True)

        decision = await hooks.decide(event, validate=validate)
        dispatch.decisions += self.redactor.data(decisions_as_data(decision))
        if decision.replaced_by and decision.arguments is not None:
            # Parameters replaced by a guard must pass validation and the grant check too.
            self._validate(dispatch, spec, decision.arguments)
            await self._check_rights(dispatch)
            event = event.with_arguments(decision.arguments)
        await enforce(self.approvals, hooks.approver or self._approver, dispatch, event, decision)

    async def _preview(self, dispatch: Dispatch, params: Mapping[str, Any]) -> str:
        spec = dispatch.found.spec
        assert spec.preview is not None  # noqa: S101  the caller checks that the op has a preview
        context = self._context(dispatch, min(self.clock() + _PREVIEW_SECONDS, dispatch.call.deadline))
        try:
            with anyio.fail_after(_PREVIEW_SECONDS):
                own = spec.params.model_validate(spec.filled(params, dispatch.origin))
                return self.redactor.text(await spec.preview(own, context))
        finally:
            context.end()

    async def _run(self, dispatch: Dispatch, spec: OpSpec) -> Any:
        dispatch.reserved.clear()
        call, now = dispatch.call, self.clock()
        deadline = min(now + (spec.timeout or _DEFAULT_TIMEOUT), call.deadline)
        # What another op dispatches may outlive it, in a task of its plugin, which is not cancelled with the call.
        is_ended = call.ends_dispatches and deadline == call.deadline and dispatch.within is None
        context = self._context(dispatch, deadline)
        try:
            result, error = await run_handler(dispatch, context, deadline - now, has_deadline=not is_ended)
        except get_cancelled_exc_class():
            if is_ended and self.clock() >= deadline:
                await self._recorder.settle(dispatch, "failed", OpTimeout(dispatch.op, deadline - now))
            else:
                await self._recorder.settle(dispatch, "cancelled", OpCancelled(dispatch.op))
            raise
        finally:
            context.end()
        if error is not None:
            raise await self._recorder.settle(dispatch, "failed", error)
        return await self._answer(dispatch, spec, result)

    def _context(self, dispatch: Dispatch, deadline: float) -> DispatchContext:
        return self.context(
            dispatch.found.plugin,
            dispatch.call,
            op=dispatch.op,
            effect=dispatch.effect,
            deadline=deadline,
            grant=dispatch.grant,
            note=dispatch.note if dispatch.intended else None,
            used=dispatch.used,
            outer=dispatch.lease,
            key=dispatch.effect_key,
            within=dispatch.within or dispatch.call.within or None,
        )

    def context(
        self,
        plugin: LoadedPlugin,
        call: Call,
        *,
        op: str,
        effect: str,
        deadline: float,
        grant: Grant | None = None,
        note: dict[str, Any] | None = None,
        used: set[Capability] | None = None,
        outer: Lease | None = None,
        key: str | None = None,
        within: str | None = None,
    ) -> DispatchContext:
        """Return the context for code of ``plugin``, with the call's grant or the narrower ``grant``.

        Args:
            plugin: the plugin whose code gets the context.
            call: the call.
            op: the name of the op.
            effect: the id of the effect.
            deadline: the deadline on the clock of ``anyio.current_time()``.
            grant: a narrower grant than that of the call.
            note: the notes made so far, or ``None`` if no effect is running and notes are not allowed.
            used: a set to which the capabilities that the code uses are added.
            outer: the lease of what dispatched the effect.
            key: the idempotency key of the effect.
            within: the id of the effect that caused it.
        """
        return DispatchContext(
            op=op,
            effect=effect,
            deadline=deadline,
            home=self._home,
            owner=plugin,
            call=call,
            grant=call.grant if grant is None else grant,
            seam=self,
            note=note,
            used=set() if used is None else used,
            outer=outer,
            key=key,
            within=within,
        )

    async def record_note(self, effect: str, op: str, note: Mapping[str, Any]) -> None:
        """Record a note about a running effect."""
        await self._ledger.note(effect, op, note)

    async def _answer(self, dispatch: Dispatch, spec: OpSpec, result: Any) -> Any:
        try:
            reply, redacted, size = plain_result(self.redactor, spec, result, dispatch.plugin, dispatch.package)
        except OpResultInvalid as error:
            raise await self._recorder.settle(dispatch, "failed", error) from None
        await self._recorder.done(dispatch, redacted, size)
        return reply
