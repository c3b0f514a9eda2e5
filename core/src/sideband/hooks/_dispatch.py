"""Dispatch events to plugins and combine their answers into one typed outcome, even if plugins fail or hang."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from time import perf_counter
from types import CoroutineType
from typing import Any, TypeVar

from anyio import current_effective_deadline, get_cancelled_exc_class, move_on_after

from ..contexts import PluginContext, TimedLease
from ..contexts._editions import Editions
from ..ops import Level
from ._decision import Decision
from ._errors import HookError, HookFailed, HookNotFound, HookTimeout
from ._event import CollectEvent, DecideEvent, Event, FirstEvent, Kind, ObserveEvent, UpdateEvent
from ._folds import Collected, CollectFold, DecideFold, FirstFold, Fold, UpdateFold, Validate
from ._implementations import Implementation
from ._reports import NOTHING, Acted, HookOutcome, HookReport, Report, deliver, log_report
from ._spec import HOOK_SPECS

R = TypeVar("R")


class Hooks:
    """The dispatcher of hook events, with one method for each kind.

    An event without implementations costs one dictionary lookup. Implementations run sequentially in the calling task
    and share one deadline. A failure is reported and handled according to the hook's failure policy. Cancellation of
    the calling task propagates.

    Args:
        report: called with each failure and, if ``trace`` is set, with each call.
        trace: whether to report successful calls too.
        deadlines: deadlines in seconds, by hook, which override those of the specs.

    Raises:
        HookNotFound: if ``deadlines`` names an unknown hook.
    """

    def __init__(
        self, *, report: Report = log_report, trace: bool = False, deadlines: Mapping[str, float] | None = None
    ) -> None:
        for hook in deadlines or ():
            if hook not in HOOK_SPECS:
                raise HookNotFound(hook, known=HOOK_SPECS)
        self.trace = trace
        self.editions = Editions()
        self._report = report
        self._deadlines = {name: spec.deadline for name, spec in HOOK_SPECS.items()} | dict(deadlines or {})
        self._implementations: dict[str, tuple[Implementation, ...]] = dict.fromkeys(HOOK_SPECS, ())
        self._listeners: tuple[Callable[[ObserveEvent], object], ...] = ()
        self._adapted: Callable[[PluginContext | None], PluginContext | None] = _unchanged

    def has(self, hook: str, level: Level | None = None) -> bool:
        """Return whether a plugin or a listener gets the events of ``hook``, so that callers can skip making them.

        Args:
            hook: the name of the hook.
            level: the level of the event; ``None`` for any level.

        Raises:
            HookNotFound: if the hook is unknown.
        """
        try:
            found = self._implementations[hook]
            if self._listeners and HOOK_SPECS[hook].kind is Kind.OBSERVE:
                return True
            return any(one.constraints.level <= level for one in found) if level is not None else bool(found)
        except KeyError:
            raise HookNotFound(hook, known=HOOK_SPECS) from None

    def deadline(self, hook: str) -> float:
        """Return the deadline of a hook in seconds."""
        return self._deadlines[hook]

    def listen(self, listener: Callable[[ObserveEvent], object]) -> None:
        """Call a function with each observe event, before the plugins, so that none of them can delay or prevent it.

        Args:
            listener: must neither block nor raise.

        Example:
            >>> from sideband.hooks import HookRegistry
            >>> hooks, seen = HookRegistry(), []
            >>> hooks.listen(seen.append)
            >>> hooks.has("turn_start")
            True
        """
        self._listeners = (*self._listeners, listener)

    def stop_listening(self, listener: Callable[[ObserveEvent], object]) -> None:
        """Call a function no more; do nothing if it is not a listener.

        Example:
            >>> from sideband.hooks import HookRegistry
            >>> hooks, seen = HookRegistry(), []
            >>> hooks.listen(seen.append)
            >>> hooks.stop_listening(seen.append)
            >>> hooks.has("turn_start")
            False
        """
        self._listeners = tuple([one for one in self._listeners if one != listener])

    async def update(self, event: UpdateEvent[R]) -> R:
        """Pass an event through all implementations, each of which may change it.

        Returns:
            The event after all changes; for ``Input``, possibly a ``Handled``.
        """
        implementations = self._implementations[event.hook]
        if not implementations:
            return event  # type: ignore[return-value]  # R of an update includes the event itself
        fold = UpdateFold(HOOK_SPECS[event.hook], implementations, event, event)
        await self._drive(fold)
        outcome: R = fold.outcome
        return outcome

    async def decide(self, event: DecideEvent, *, validate: Validate | None = None) -> Decision:
        """Decide whether an event may happen.

        Args:
            event: the event.
            validate: called with the arguments of each ``Replace``; returns them as the other implementations will see
                them. If it raises, the implementation that replaced them has failed.

        Returns:
            The decision, with the final arguments.
        """
        implementations = self._implementations[event.hook]
        if not implementations:
            return Decision(arguments=event.final_arguments)
        fold = DecideFold(HOOK_SPECS[event.hook], implementations, event, validate)
        await self._drive(fold)
        return fold.decision

    async def collect(self, event: CollectEvent[R]) -> tuple[Collected[R], ...]:
        """Collect the items of all implementations, in order."""
        implementations = self._implementations[event.hook]
        if not implementations:
            return ()
        fold = CollectFold(HOOK_SPECS[event.hook], implementations, event, [])
        await self._drive(fold)
        return tuple(fold.outcome)

    async def first(self, event: FirstEvent[R]) -> R | None:
        """Return the first answer, or ``None`` if there is no answer and the default applies."""
        implementations = self._implementations[event.hook]
        if not implementations:
            return None
        fold = FirstFold(HOOK_SPECS[event.hook], implementations, event)
        await self._drive(fold)
        outcome: R | None = fold.outcome
        return outcome

    async def observe(self, event: ObserveEvent) -> None:
        """Notify all listeners and implementations, in order. Exceptions of the latter are reported, not raised."""
        for listener in self._listeners:
            listener(event)
        implementations = self._implementations[event.hook]
        if implementations:
            await self._drive(Fold(HOOK_SPECS[event.hook], implementations, event))

    async def _drive(self, fold: Fold[Any], seconds: float | None = None) -> None:
        hook = fold.event.hook
        seconds = self._deadlines[hook] if seconds is None else seconds
        began = perf_counter()
        latest = began + seconds
        current: Implementation | None = None
        ended = False
        edition = self.editions.current
        edition.users += 1
        try:
            with move_on_after(seconds) as scope:
                for current in fold:
                    answer: Any = None
                    event = fold.event
                    try:
                        is_plain = current.context is None
                        answer = current.function(event) if is_plain else self._call(current, event, latest)
                        if type(answer) is CoroutineType or hasattr(answer, "__await__"):
                            answer = await answer
                        now = perf_counter()
                        # The scope does not notice if its cancellation was swallowed, or the loop blocked.
                        if now >= latest:
                            raise _timeout(hook, current, seconds)  # noqa: TRY301  handled like others
                        if answer is not None:
                            fold.check(current, answer)
                            ended = fold.accept(current, answer)
                    except (Exception, SystemExit, get_cancelled_exc_class()) as raised:  # noqa: BLE001  plugins may fail
                        now = perf_counter()
                        error = _blame(hook, current, raised, seconds, late=now >= latest)
                        ended = fold.reject(current, error)
                        if isinstance(error, HookTimeout):
                            self._report_timeout(event, current, fold, now - began, error)
                            return
                        self._report_call(event, current, HookOutcome.FAILED, now - began, error=error)
                    else:
                        if self.trace:
                            acted = Acted.by(answer, changed=fold.event is not event, ended=ended)
                            self._report_call(event, current, HookOutcome.DONE, now - began, acted=acted)
                    if ended:
                        break
                    began = now
            if scope.cancelled_caught and current is not None:
                timeout = _timeout(hook, current, seconds)
                fold.reject(current, timeout)
                self._report_timeout(event, current, fold, perf_counter() - began, timeout)
        finally:
            edition.users -= 1
            if edition.unused is not None and not edition.users:
                edition.unused.set()

    async def _call(self, one: Implementation, event: Event, deadline: float) -> Any:
        """Call an implementation with its context, which is revoked at the deadline or if the call is cancelled."""
        assert one.context is not None  # noqa: S101  checked by the caller
        context: Any = self._adapted(one.context(event))
        lease = TimedLease(deadline)
        if hasattr(context, "leased"):
            context = context.leased(lease)
        try:
            answer = one.function(event, context)
            return await answer if hasattr(answer, "__await__") else answer
        except BaseException as raised:
            if not isinstance(raised, Exception):
                lease.end()
            raise
        finally:
            lease.settle()

    def _report_call(
        self,
        event: Event,
        one: Implementation,
        outcome: HookOutcome,
        seconds: float = 0.0,
        *,
        acted: Acted = NOTHING,
        error: HookError | None = None,
    ) -> None:
        reason = acted.reason if error is None else error.message
        report = HookReport(
            event.hook,
            one.plugin,
            outcome,
            seconds * 1000,
            acted.answer,
            error,
            one.package,
            acted.action,
            reason,
            event,
        )
        deliver(self._report, report)

    def _report_timeout(
        self, event: Event, current: Implementation, fold: Fold[Any], seconds: float, timeout: HookTimeout
    ) -> None:
        self._report_call(event, current, HookOutcome.TIMEOUT, seconds, error=timeout)
        for one in fold.waiting():
            self._report_call(event, one, HookOutcome.NOT_REACHED, error=timeout)


def _unchanged(context: PluginContext | None) -> PluginContext | None:
    return context


def cancelled_itself() -> bool:
    """Return whether called code raised the current cancellation itself, rather than an enclosing scope or task."""
    import asyncio  # noqa: PLC0415  slow to import, and not used on trio

    if current_effective_deadline() == -math.inf or get_cancelled_exc_class() is not asyncio.CancelledError:
        return False
    return (task := asyncio.current_task()) is not None and task.cancelling() == 0


def _blame(hook: str, one: Implementation, raised: BaseException, seconds: float, *, late: bool) -> HookError:
    """Return the error for what an implementation raised. A cancellation from outside is raised again."""
    if isinstance(raised, get_cancelled_exc_class()) and not cancelled_itself():
        raise raised
    if isinstance(raised, HookFailed | HookTimeout) and raised.hook == hook and raised.plugin == one.plugin:
        return raised
    if late:
        timeout = _timeout(hook, one, seconds)
        timeout.__cause__ = raised
        return timeout
    return HookFailed.raised(hook, one.plugin, raised, package=one.package)


def _timeout(hook: str, one: Implementation, seconds: float) -> HookTimeout:
    return HookTimeout(hook, one.plugin, seconds, package=one.package)
