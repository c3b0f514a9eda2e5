"""The effects of one host: each is recorded, or answered from the file."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from anyio import CancelScope, sleep_forever
from attrs import define, field
from pydantic import BaseModel, ValidationError
from sideband.broker import EffectMatcher
from sideband.errors import SidebandError
from sideband.ops import OpContext, OpError
from sideband.tools import Tool, ToolSource

from ._diff import differences
from ._entries import CallScope, RequestedEffect, ids_of, sorted_data, step_of
from ._errors import CassetteDivergence, CassetteInvalid
from ._file import CassetteFile, RecordedEffect, digest_of, rendered, write_cassette
from ._revived import described, revived
from ._sources import TapedSource, recorded_tools
from ._text import ValuePlaces, decoded, encoded

if TYPE_CHECKING:
    from sideband.broker import Call, Redaction, TapedDispatch

_REDACTED = re.compile(r"\[redacted:([^\]\n]{1,200})\]")
_MOST_NAMES = 1_000
_LIST = "tools.list"
_ANSWERS = ("result", "error")
# Whether the current task runs the handler of a recorded effect, whose own effects are part of it.
_within_effect: ContextVar[bool] = ContextVar("sideband_within_recorded_effect", default=False)


@define(eq=False)
class Tape:
    """The cassette of one host: see ``sideband.broker.EffectTape``.

    Args:
        path: the file.
        mode: ``record``, ``replay`` or ``missing``.
        places: the folders of this machine.
        redactor: the secrets that the host knows.
        file: the content of the file, unless it is only written.
    """

    path: Path
    mode: str
    _places: ValuePlaces
    _redactor: Redaction
    _file: CassetteFile | None
    _started: str | None = field(default=None, init=False)
    _matcher: EffectMatcher[RecordedEffect] = field(factory=EffectMatcher, init=False)
    _calls: EffectMatcher[None] = field(factory=EffectMatcher, init=False)
    _scopes: list[CallScope] = field(factory=list, init=False)
    _entries: list[RequestedEffect] = field(factory=list, init=False)
    _sources: dict[str, RequestedEffect] = field(factory=dict, init=False)
    _runs: dict[str, int] = field(factory=dict, init=False)
    _taken: dict[str, RequestedEffect] = field(factory=dict, init=False)
    _whole: set[str] = field(factory=set, init=False)  # the ids of recorded effects, and of those that are part of them
    _failure: SidebandError | None = field(default=None, init=False)
    _ending: set[CancelScope] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        if self._file is None:
            return
        texts = EffectMatcher[None]()
        for one in self._file.effects:
            self._matcher.recorded[texts.name(one.op, one.digest, within=one.within)] = one
        # What stands for a secret in an answer is one from now on, in each encoding that the secret was found in.
        found = {one[0]: one[1] for one in _REDACTED.finditer(self._file.model_dump_json())}
        for text, name in islice(found.items(), _MOST_NAMES):
            self._redactor.protect(text, name)

    @property
    def name(self) -> str:
        """See ``EffectTape``."""
        return self.path.name

    @property
    def replays(self) -> bool:
        """See ``EffectTape``."""
        return self.mode == "replay"

    def now(self) -> datetime:
        """Return the time of the host, which is that of the recording in a replay."""
        if self._started is None:
            known = self._file.started if self._file is not None else None
            self._started = known or datetime.now().astimezone().isoformat(timespec="seconds")
        return datetime.fromisoformat(self._started)

    def takes(self, dispatch: TapedDispatch) -> bool:
        """See ``EffectTape``."""
        self.check()
        scope: CallScope | None = dispatch.call.scope
        is_inner = _within_effect.get() if scope is None else scope.is_inner or dispatch.within in self._whole
        if is_inner:
            self._whole.add(dispatch.effect)
        return not is_inner and (dispatch.bound is None or dispatch.bound.replayed)

    def check(self) -> None:
        """Raise why the replay has stopped, if it has."""
        if self._failure is not None:
            raise self._failure

    @contextmanager
    def ending(self) -> Iterator[None]:
        """See ``EffectTape``."""
        try:
            with CancelScope() as scope:
                self._ending.add(scope)
                try:
                    yield
                finally:
                    self._ending.discard(scope)
        except Exception:
            self.check()
            raise
        self.check()

    def enter(self, call: Call, tool: str, arguments: Any) -> None:
        """See ``EffectTape``."""
        plain = self._clean(arguments, ids_of(call))
        step = step_of(call)
        call.scope = scope = CallScope(step, tool, plain, perf_counter(), is_inner=_within_effect.get())
        if not scope.is_inner:
            scope.name = self._calls.name(tool, digest_of(plain), within=step).removeprefix(":")
            self._scopes.append(scope)

    def source(self, source: ToolSource) -> ToolSource:
        """See ``EffectTape``."""
        return TapedSource(source, partial(self._tools_of, source.name), partial(self._record_tools, source.name))

    def _tools_of(self, source: str) -> Sequence[Tool] | None:
        """Return the recorded tools of a source, or ``None`` if it is to be opened."""
        params = {"source": source}
        # A source is opened once for the host, or for each session, and has the same tools in all.
        known = self._matcher.find(EffectMatcher[None]().name(_LIST, digest_of(params), within=""))
        if known is None:
            if self.replays:
                raise self._stop(self._difference(_LIST, "", params, 1))
            return None
        listed = self._places.show(decoded(known.result))
        self._record_tools(source, listed)
        try:
            return recorded_tools(listed)
        except (TypeError, LookupError, ValueError):
            raise self._stop(CassetteInvalid(self.path, f"the tools of the source `{source}` are invalid")) from None

    def _record_tools(self, source: str, listed: Any) -> None:
        answer = {"result": self._places.hide(self._redactor.data(listed, sensitive_keys=False))}
        self._sources[source] = RequestedEffect(None, "", 0, 0.0, _LIST, {"source": source}, answer=answer)

    def find(self, dispatch: TapedDispatch) -> Callable[[Any, OpContext], Awaitable[Any]] | None:
        """See ``EffectTape``."""
        call, ids = dispatch.call, {**ids_of(dispatch.call), dispatch.effect: "effect"}
        params = self._clean(dispatch.passed(), ids)
        run = self._runs.setdefault(f"{dispatch.origin.session}:{dispatch.origin.run}", len(self._runs))
        entry = RequestedEffect(call.scope, step_of(call), run, dispatch.started, dispatch.op, params)
        self._taken[dispatch.effect] = entry
        if self._file is None:
            return None
        within, digest = entry.within, digest_of(params)
        name = self._matcher.name(dispatch.op, digest, within=within)
        known = self._matcher.find(name)
        if known is None:
            if self.mode == "missing":
                return None
            raise self._stop(self._difference(dispatch.op, within, params, int(name.rpartition(":")[2])))
        result = self._places.show(decoded(known.result), ids)
        if "result" in known.model_fields_set:
            try:
                dispatch.found.spec.result_adapter.validate_python(result)
            except ValidationError:
                problem = f"the result of {known.op} ({within or 'effect'} {known.ordinal}) does not match the op"
                raise self._stop(CassetteInvalid(self.path, problem)) from None
        entry.parts = [decoded(part) for part in known.parts]
        entry.answer = {one: decoded(getattr(known, one)) for one in _ANSWERS if one in known.model_fields_set}
        self._entries.append(self._taken.pop(dispatch.effect))

        async def answer(params: BaseModel, ctx: OpContext) -> Any:  # noqa: ARG001  the signature of a handler
            for part in entry.parts:
                await ctx.emit(self._places.show(part, ids))
            if "error" in entry.answer:
                raise revived(self._places.show(entry.answer["error"], ids), dispatch.found.family.errors)
            if "result" not in entry.answer:
                await sleep_forever()  # it was cancelled, and is again
            return result

        return answer

    async def record(self, dispatch: TapedDispatch, running: Coroutine[Any, Any, Any]) -> Any:
        """See ``EffectTape``."""
        call, entry = dispatch.call, self._taken.pop(dispatch.effect)
        ids = {**ids_of(call), dispatch.effect: "effect"}
        self._entries.append(entry)
        on_part = call.on_part
        if on_part is not None:

            async def take(part: Mapping[str, Any]) -> None:
                entry.add(self._places.hide(dict(part), ids))
                await on_part(part)

            call.on_part = take
        self._whole.add(dispatch.effect)
        outer = _within_effect.set(True)
        try:
            result = await running
        except OpError as error:
            entry.answer = {"error": self._places.hide(described(error), ids)}
            raise
        except SidebandError:
            self._entries.remove(entry)  # the ledger cannot be written: this is not its answer
            raise
        finally:
            _within_effect.reset(outer)
            call.on_part = on_part
        if dispatch.found.spec.reveals:
            self._protect(result, dispatch.op)
        entry.answer = {"result": self._places.hide(self._redactor.data(result, sensitive_keys=False), ids)}
        return result

    def finish(self, raised: BaseException | None) -> None:
        """End the recording or the replay of a host that is closed.

        Args:
            raised: the exception that closes it, if any.

        Raises:
            CassetteDivergence: if the replay has stopped, or recorded effects were not requested.
            StateUnwritable: if the file cannot be written.
        """
        if self._failure is not None and raised is not self._failure:
            raise self._failure from raised
        if self.replays:
            left = [*self._matcher.left.values()]
            if left and raised is None:
                ops = ", ".join(dict.fromkeys(one.op for one in left))
                problem = f"{len(left)} recorded effects were not requested ({ops})"
                raise CassetteDivergence(
                    self.path, left[0].op, problem, diff=differences(decoded(left[0].params), None)
                )
        elif raised is None or (isinstance(raised, SidebandError) and self._failure is None):
            write_cassette(self.path, self._rendered())

    def _rendered(self) -> bytes:
        """Return the content of the file, without any secret that is known by now."""
        calls, names = EffectMatcher[None](), EffectMatcher[None]()
        for scope in self._scopes:
            scope.arguments = self._redactor.data(scope.arguments)
            scope.name = calls.name(scope.tool, digest_of(scope.arguments), within=scope.step).removeprefix(":")
        effects = []
        listings = [one for _, one in sorted(self._sources.items())]
        for entry in (*listings, *sorted(self._entries, key=lambda one: one.place)):
            params = self._redactor.data(entry.params)
            within, digest = entry.within, digest_of(params)
            ordinal = int(names.name(entry.op, digest, within=within).rpartition(":")[2])
            found = {
                "op": entry.op,
                **({"within": self._redactor.text(within)} if within else {}),
                "ordinal": ordinal,
                "digest": digest,
                "params": encoded(sorted_data(params)),
                **({"parts": encoded(self._redactor.data(entry.parts, sensitive_keys=False))} if entry.parts else {}),
                **{key: encoded(self._redactor.data(one, sensitive_keys=False)) for key, one in entry.answer.items()},
            }
            effects.append(found)
        return rendered(effects, self._started)

    def _protect(self, result: Any, op: str) -> None:
        """Let all that a secret's own op has returned be a secret, also if its plugin did not protect it."""
        waiting = [result]
        while waiting:
            one = waiting.pop()
            if isinstance(one, str | bytes) and self._redactor.unbound(one, None) is None:
                self._redactor.protect(one, op)
            waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()

    def _clean(self, value: Any, ids: Mapping[str, str]) -> Any:
        return self._places.hide(self._redactor.data(value), ids)

    def _stop(self, error: SidebandError) -> SidebandError:
        """End all calls with an error, whatever their code makes of it."""
        self._redactor.error(error)
        self._failure = error
        for scope in self._ending:
            scope.cancel()
        return error

    def _difference(self, op: str, within: str, params: Any, ordinal: int) -> CassetteDivergence:
        left = [one for one in self._matcher.left.values() if one.op == op]
        where = f" ({within})" if within else ""
        if not left:
            more = "more often than recorded" if ordinal > 1 else "but not recorded"
            problem = f"`{op}`{where} was requested {more}"
            return CassetteDivergence(self.path, op, problem, ordinal=ordinal, diff=differences(None, params))
        near = max(left, key=lambda one: (one.within == within, -len(differences(decoded(one.params), params))))
        problem = f"`{op}`{where} was requested with other parameters than recorded"
        diff = differences(decoded(near.params), params)
        if not diff:
            problem = (
                f"`{op}` was requested by `{within or 'the user'}`, but recorded for `{near.within or 'the user'}`"
            )
        return CassetteDivergence(self.path, op, problem, ordinal=ordinal, diff=diff)
