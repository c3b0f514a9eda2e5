"""Routes of plugins, which may answer an input before the model is called.

The input is stored before a handler begins, and each route that matches has entries in the session: that it has
started, and how it ended. So a route that its host's death interrupted runs again, and effects that it had caused are
answered from their record.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from time import perf_counter
from typing import Any, Protocol, Self

import anyio
from anyio.lowlevel import checkpoint
from attrs import define, field, frozen
from sideband.broker import Attempt, Broker, Redaction, safe_text
from sideband.hooks import (
    Collected,
    HookError,
    HookFailed,
    HookRegistry,
    HookResultInvalid,
    Route,
    RouteEnd,
    RouteRequest,
    Routes,
)
from sideband.ledger import EffectRecord, LedgerError
from sideband.messages import AssistantMessage, TextPart, UserMessage
from sideband.providers import ANSWER_LIMITS
from sideband.rendering import whole_characters

from ._announcer import Announcer
from ._contexts import AgentPluginContext
from ._errors import ApprovalAwaited
from ._queues import user_message
from ._run import Run
from ._session_tools import SessionTools
from ._tools import MOST_REPLAYS, listed
from .sessions import Entry, MessageEntry, RouteEntry, Session

NOT_ROUTED = frozenset({"agent", "plugin"})
"""The sources of inputs that go to the model at once: tasks of children, and inputs that plugins queued."""

_SHOWN = 200
_log = logging.getLogger("sideband.agent")


class Begin(Protocol):
    """Stores the beginning of a run, unless it is stored, together with further entries."""

    def __call__(self, run: Run, *entries: Entry) -> Awaitable[None]:
        """Store them."""


@frozen
class _Matched:
    """A route that matched the input of a run.

    Attributes:
        plugin: the plugin that added it.
        route: the route.
        request: the input.
        event: the event for which it was added.
        reason: why it matched.
        attempt: the attempt to handle the input.
        package: the distribution and version of the plugin.
    """

    plugin: str
    route: Route
    request: RouteRequest
    event: Routes
    reason: str
    attempt: Attempt
    package: str

    def entry(self, status: Any, reason: str = "", *, seed: str = "") -> RouteEntry:
        """Return an entry about the route."""
        name, run = self.route.name, self.request.run
        return RouteEntry(run=run, plugin=self.plugin, name=name, status=status, reason=reason, seed=seed)


@define
class _Earlier:
    """What the session contains about the routes of a run, which was interrupted.

    Attributes:
        first: the first start of each route, by plugin and name.
        starts: how often each route was started, except to continue after an approval.
        ended: the routes that have ended.
        open: the route that was interrupted, or waited for an approval.
    """

    first: dict[tuple[str, str], RouteEntry] = field(factory=dict)
    starts: Counter[tuple[str, str]] = field(factory=Counter)
    ended: set[tuple[str, str]] = field(factory=set)
    open: RouteEntry | None = None

    @classmethod
    def of(cls, entries: Iterable[Entry], run: str) -> Self:
        """Return what these entries contain about a run."""
        found = cls()
        for one in entries:
            if isinstance(one, RouteEntry) and one.run == run:
                found._take(one, (one.plugin, one.name))
        return found

    def _take(self, entry: RouteEntry, key: tuple[str, str]) -> None:
        if entry.status == "started":
            self.open = self.first.setdefault(key, entry)
            self.starts[key] += 1
        elif entry.status == "waiting":
            self.starts[key] -= 1
        else:
            self.ended.add(key)
            self.open = None


@define(eq=False)
class Router:
    """The routes of one agent's session.

    Args:
        session: stores replies and decisions.
        hooks: the agent's hooks, which add routes.
        announcer: emits replies and decisions.
        broker: knows the recorded effects of a route that was interrupted.
        redactor: removes secrets from replies and reasons.
        tools: the tools of the session, which child agents of a handler may call.
        channel: the channel of the agent.
        seconds: the deadline of a handler.
    """

    session: Session = field(repr=False)
    hooks: HookRegistry = field(repr=False)
    announcer: Announcer = field(repr=False)
    broker: Broker = field(repr=False)
    redactor: Redaction = field(repr=False)
    tools: SessionTools = field(repr=False)
    channel: str
    seconds: float

    async def answer(self, run: Run, begin: Begin) -> bool:
        """Try the routes for the input of a run. Return whether one of them has answered it.

        A resumed run is routed only if a route was interrupted: otherwise it was decided before that the model answers.

        Args:
            run: the run.
            begin: stores its beginning. Called before a handler is.

        Raises:
            ApprovalAwaited: if a handler needs an approval, and there is no approver.
        """
        if run.input is None:
            earlier = _Earlier.of(self.session.path(), run.id)
            if earlier.open is None:
                return False
        elif run.source in NOT_ROUTED:
            return False
        else:
            earlier = _Earlier()
        text, attachments = _input_of(run)
        event = Routes(run.id, text, run.source, self.channel)
        latest = perf_counter() + self.hooks.deadline(Routes.hook)
        for one in _in_order(await self.hooks.collect(event), first=earlier.open):
            if (one.plugin, one.value.name) in earlier.ended:
                continue
            matched = await self._match(one, event, attachments, earlier, latest)
            if matched is not None and await self._try(matched, run, begin, earlier):
                return True
        if earlier.open is not None:
            await begin(run)
            await self.leave(earlier.open, "it was interrupted, and is not available or does not match any more", run)
        return False

    async def leave(self, entry: RouteEntry, reason: str, run: Run | None = None) -> None:
        """End a route that was interrupted and does not run again, with a message for the model about its effects.

        Args:
            entry: an entry about the route, which has not ended.
            reason: why it does not run again.
            run: its run, unless a later one has begun.
        """
        ended = RouteEntry(run=entry.run, plugin=entry.plugin, name=entry.name, status="failed", reason=reason)
        has_ended = entry.status == "waiting" or (run is not None and run.aborted)  # else its host was killed
        note = await self._note(entry, "was interrupted", is_sure=has_ended)
        await self._store(ended, note, run)
        await self.announcer.emit(RouteEnd, entry.run, entry.name, entry.plugin, reason, handled=False, ms=0.0)

    async def _match(
        self, one: Collected[Route], event: Routes, attachments: int, earlier: _Earlier, latest: float
    ) -> _Matched | None:
        """Return the route if it matches. The matches of all routes share the deadline of the hook."""
        route, seconds = one.value, latest - perf_counter()
        if seconds <= 0:
            return None
        try:
            found = await self.hooks.call(event, one.plugin, _matching(one), seconds=seconds)
            context = self.hooks.context_of(one.plugin, event)
        except (HookError, KeyError):  # reported, or unloaded meanwhile
            return None
        if found is None or found is False:
            return None
        request = RouteRequest(event.run, event.text, event.source, event.channel, found, attachments)
        principal = "user" if context is None else context.principal
        key = self._key(event.run, one.plugin, route.name)
        first = earlier.first.get((one.plugin, route.name))
        attempt = Attempt.first(key) if first is None else await self._again(key, principal, first.time, first.seed)
        attempt.parks = True
        return _Matched(one.plugin, route, request, event, _reason(route), attempt, one.package)

    def _key(self, run: str, plugin: str, route: str) -> str:
        return f"{self.session.id}:{run}:route.{plugin}.{route}"

    async def _again(self, key: str, principal: str | None, started: str, seed: str) -> Attempt:
        return await self.broker.attempts.again(key, principal=principal, started=started, seed=seed, stops=True)

    async def _try(self, one: _Matched, run: Run, begin: Begin, earlier: _Earlier) -> bool:
        """Call the handler of a route. Return whether it has answered the input."""
        key = one.plugin, one.route.name
        if earlier.open is not None and (earlier.open.plugin, earlier.open.name) == key:
            earlier.open = None
        await begin(run, one.entry("started", one.reason, seed=one.attempt.seed))
        began = perf_counter()
        status, reason, reply = "failed", f"it was interrupted {MOST_REPLAYS + 1} times", None
        if earlier.starts[key] <= MOST_REPLAYS:
            self.tools.renew()
            status, reason, reply = await self._handle(one)
        ms = (perf_counter() - began) * 1000
        await checkpoint()  # a handler that aborts the run has not answered
        if one.attempt.waits is not None:
            await begin(run, one.entry("waiting", one.reason, seed=one.attempt.seed))
            raise ApprovalAwaited([one.attempt.waits])
        reason = whole_characters(self.redactor.text(reason))
        await self._end(one, run, one.entry(status, reason), reply)
        await self.announcer.emit(RouteEnd, run.id, key[1], key[0], reason, handled=reply is not None, ms=ms)
        await self.broker.attempts.forget(one.attempt)
        return reply is not None

    async def _handle(self, one: _Matched) -> tuple[str, str, str | None]:
        """Call a handler. Return its status, the reason, and its reply, if any."""

        async def handle(_: Routes, ctx: Any) -> str | None:
            if isinstance(ctx, AgentPluginContext):
                ctx.attempt = one.attempt
            try:
                reply: Any = one.route.handler(one.request, ctx)
                if hasattr(reply, "__await__"):
                    reply = await reply
            except Exception as error:
                if one.attempt.waits is not None:  # for an approval, so it has not failed
                    return None
                raise _failure(one.plugin, one.route, error, one.package) from error
            finally:
                if isinstance(ctx, AgentPluginContext) and ctx.lease is not None:
                    ctx.lease.end()
            if not isinstance(reply, str | None):
                raise HookResultInvalid(Routes.hook, one.plugin, reply, allowed="str", package=one.package)
            if one.attempt.unknown is not None:
                raise one.attempt.unknown
            return None if reply is None else self._checked(reply)

        try:
            reply = await self.hooks.call(one.event, one.plugin, handle, seconds=self.seconds)
        except HookError as error:
            return "failed", f"after it {one.reason}: {error.message}", None
        except KeyError:
            return "failed", f"the plugin `{one.plugin}` was unloaded", None
        if reply is None:
            return "declined", f"declined after it {one.reason}", None
        if skipped := one.attempt.skipped:
            _log.warning(
                "the route `%s` of plugin `%s` ran again and did not request effects that it had begun: %s",
                *(one.route.name, one.plugin, listed(skipped)),
            )
        return "handled", one.reason, reply

    def _checked(self, reply: str) -> str:
        if len(reply) > ANSWER_LIMITS.characters:
            raise ValueError(f"the reply exceeds the limit of {ANSWER_LIMITS.characters:,} characters")
        if not (reply := whole_characters(self.redactor.text(reply))).strip():
            raise ValueError("the reply is empty; return None to decline")
        return reply

    async def _end(self, one: _Matched, run: Run, entry: RouteEntry, reply: str | None) -> None:
        """Store how a route ended, with its reply; without one, with what the model must know."""
        if reply is None:
            await self._store(entry, await self._note(entry, "then left it to you", is_sure=True), run)
            return
        message = AssistantMessage(content=reply, metadata={"route": one.route.name, "plugin": one.plugin})
        with anyio.CancelScope(shield=True):
            await self.session.append(entry, MessageEntry(message=message, run=run.id, step=str(run.step)))
        run.messages.append(message)
        run.step += 1
        await self.announcer.emit_reply(message)

    async def _store(self, entry: RouteEntry, note: UserMessage | None, run: Run | None) -> None:
        step = None if run is None else str(run.step)
        notes = () if note is None else (MessageEntry(message=note, run=entry.run, step=step),)
        with anyio.CancelScope(shield=True):
            await self.session.append(entry, *notes)
        if note is not None:
            if run is not None:
                run.messages.append(note)
            await self.announcer.emit_message(note)

    async def _note(self, entry: RouteEntry, left: str, *, is_sure: bool) -> UserMessage | None:
        """Return a message about the effects of a route that has not answered, if it has or may have caused effects.

        Args:
            entry: an entry about the route.
            left: what it did instead of answering.
            is_sure: whether it has caused no effects if none is recorded.
        """
        found: tuple[EffectRecord, ...] = ()
        if self.session.tree.is_copied(entry.id):  # its effects are those of another session
            is_sure = False
        else:
            try:
                attempt = await self._again(self._key(entry.run, entry.plugin, entry.name), None, "", entry.seed)
                await self.broker.attempts.forget(attempt)
                found = attempt.skipped
            except LedgerError:
                is_sure = False
        if is_sure and not found:
            return None
        effects = f"It has caused effects: {listed(found)}." if found else "It may have caused effects."
        return user_message(
            f"The route `{entry.name}` began to handle this input and {left}. {effects} Check the current state before "
            "you repeat any of them.",
            source=entry.plugin,
        )


def open_route(session: Session) -> RouteEntry | None:
    """Return the last entry about the route that the last run of a session has begun and not ended, if any."""
    for one in session.newest_first():
        if isinstance(one, RouteEntry):
            return one if one.status in ("started", "waiting") else None
        if isinstance(one, MessageEntry) and isinstance(one.message, AssistantMessage):
            return None
    return None


def _input_of(run: Run) -> tuple[str, int]:
    """Return the text of a run's input, and the number of its attachments."""
    message = run.input or run.messages[0]
    return message.text, sum(not isinstance(part, TextPart) for part in message.content)


def _in_order(found: Iterable[Collected[Route]], first: RouteEntry | None) -> list[Collected[Route]]:
    """Return routes by their order, then in the order of their plugins, then by name.

    Args:
        found: the routes.
        first: the entry of one that was interrupted, which comes first: no other one may answer instead of it.
    """
    places: dict[str, int] = {}
    for one in found:
        places.setdefault(one.plugin, len(places))
    interrupted = None if first is None else (first.plugin, first.name)
    return sorted(
        found,
        key=lambda one: (
            (one.plugin, one.value.name) != interrupted,
            *(one.value.order, places[one.plugin], one.value.name),
        ),
    )


def _matching(one: Collected[Route]) -> Callable[[Routes, Any], Any]:
    """Return a function that returns what a route finds in a text; ``None`` or ``False`` if it does not match."""
    match = one.value.match

    async def find(event: Routes, _: Any) -> Any:
        if isinstance(match, str | re.Pattern):
            return re.search(match, event.text)
        try:
            found = match(event.text)
            return await found if hasattr(found, "__await__") else found
        except Exception as error:
            raise _failure(one.plugin, one.value, error, one.package) from error

    return find


def _failure(plugin: str, route: Route, error: Exception, package: str) -> HookFailed:
    """Return a failure that names the route too."""
    problem = f"route `{route.name}`: {type(error).__name__}: {safe_text(error)}"
    return HookFailed(Routes.hook, plugin, problem, package=package)


def _reason(route: Route) -> str:
    match = route.match
    if isinstance(match, str | re.Pattern):
        pattern = match if isinstance(match, str) else match.pattern
        return f"matched `{pattern if len(pattern) <= _SHOWN else f'{pattern[:_SHOWN]}…'}`"
    return f"matched by `{getattr(match, '__name__', type(match).__name__)}`"
