"""The conformance classes of hooks and guards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from inspect import iscoroutinefunction, signature
from types import SimpleNamespace
from typing import Any, ClassVar

import attrs
import pytest
from sideband import Host, Plugin
from sideband.hooks import HOOK_SPECS, AgentStart, Event, HookRegistry, HookReport, Phase, Verdict

from ._agents import AgentConformance
from ._base import CANARY, listed
from ._events import dispatch, sample_event
from ._failing import fail
from ._stepping import Steps
from ._subject import registering, wrapped


class _HooksConformance(AgentConformance):
    """What hooks and guards have in common: they answer events.

    Attributes:
        events: events for its hooks. A hook without one gets a plain valid event.
    """

    events: ClassVar[Sequence[Event]] = ()

    def test_answers_have_the_types_of_their_hooks(self) -> None:
        """Check that each hook answers a valid event with what it may return, and in time."""

        async def check() -> None:
            async with self.open_hooks() as (hooks, reports):
                for event in self._events():
                    await dispatch(hooks, event)
                    for report in reports:
                        if report.error is not None and report.plugin == self.subject.name:
                            fail(
                                self.label,
                                expected=f"`{event.hook}` answers a valid event with {HOOK_SPECS[event.hook].returns}",
                                happened=report.error.message,
                                remedy=report.error.hint or "correct the hook; it must answer each valid event",
                            )
                    reports.clear()

        for backend in self.backends:
            self.run(check, backend=backend)

    def test_cancellation_leaves_nothing_behind(self) -> None:
        """Check that a hook that is cancelled wherever it waits leaves no task, thread, process or file."""
        asynchronous = [name for name in self._hook_names() if iscoroutinefunction(self._function(name))]
        if not asynchronous:
            pytest.skip("its hooks never wait: none is `async def`")

        async def check() -> None:
            for event in self._events():
                if event.hook in asynchronous:
                    steps = Steps()
                    async with self.open_hooks(self._watched(event.hook, steps)) as (hooks, _):
                        await self.cancel_everywhere(
                            f"`{event.hook}`",
                            steps,
                            lambda: dispatch(hooks, event),  # noqa: B023
                        )

        self.run(check)

    def test_secrets_stay_hidden(self, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
        """Check that what an event contains appears in no log or output of the plugin."""
        caplog.set_level(0)

        async def check() -> None:
            async with self.open_hooks() as (hooks, _):
                for event in self._events():
                    await dispatch(hooks, _with_text(event, CANARY))

        self.run(check)
        output = "".join(capfd.readouterr())
        for place, text in {"a log": caplog.text, "its output": output}.items():
            if CANARY in text:
                fail(
                    self.label,
                    expected="it writes nothing of what events contain: the host redacts and records them",
                    happened=f"the content of an event is in {place}",
                    remedy="log names and numbers, not content",
                )

    @asynccontextmanager
    async def open_hooks(self, plugin: Plugin | None = None) -> AsyncIterator[tuple[HookRegistry, list[HookReport]]]:
        """Open a host, and return hooks as those of an agent, and the reports of failures."""
        reports: list[HookReport] = []
        async with self.open_host(plugin=plugin) as host:
            loaded = await host.plugins.load(self.kind, self.subject.name)
            async with self.open_agent(host) as agent:
                hooks = HookRegistry(report=reports.append)
                guard = loaded.contribution if isinstance(loaded.contribution, type) else None
                hooks.register(
                    loaded.name,
                    loaded.contribution if guard is None else guard(),
                    phase=Phase.NORMAL if guard is None else Phase.GUARD,
                    context=lambda event: agent.hooks.context_of(loaded.name, event),
                    make=guard,
                )
                yield hooks, reports

    async def exercise(self, host: Host) -> None:
        """Dispatch all events."""
        async with self.open_agent(host) as agent:
            for event in self._events():
                await dispatch(agent.hooks, event)

    def _events(self) -> Iterator[Any]:
        self.reset_world()
        given = {event.hook for event in self.events}
        yield from (_filled(event, self.fill) for event in self.events)
        yield from (sample_event(name, self.world) for name in self._hook_names() if name not in given)

    def _hook_names(self) -> list[str]:
        target = self._target()
        return [name for name in HOOK_SPECS if hasattr(getattr(target, name, None), "sideband_impl")]

    def _target(self) -> Any:
        make = getattr(self.subject.value, "sideband_hooks", None)
        if make is None:
            return self.subject.value
        takes_config = "config" in signature(make).parameters
        return make(self.subject.value.Config.model_validate(self.fill(self.config))) if takes_config else make()

    def _function(self, hook: str) -> Any:
        return getattr(self._target(), hook)

    def _watched(self, hook: str, steps: Steps) -> Plugin:
        watched = {hook: steps.watch(self._function(hook))}
        make = getattr(self.subject.value, "sideband_hooks", None)
        if make is None:
            return wrapped(self.subject, watched)
        return wrapped(self.subject, {"sideband_hooks": registering(make, lambda made: _changed(made, watched))})


class HookConformance(_HooksConformance):
    """The tests of a hook plugin: a plugin in the group ``sideband.v1.hook``.

    Attributes:
        events: events for its hooks. A hook without one gets a plain valid event.

    Example:
        >>> class TestGreeting(HookConformance):
        ...     plugin = "hook.greeting"
        ...     events = [Input("hello")]
    """

    kind = "hook"


class GuardConformance(_HooksConformance):
    """The tests of a guard: a plugin in the group ``sideband.v1.guard``.

    Attributes:
        allows: events that it allows at the start of a run.
        denies: events that it denies, or asks the user about, at the start of a run.
        turns: events of one run, of which it denies only the last, because of those before.

    Example:
        >>> class TestNoShell(GuardConformance):
        ...     plugin = "guard.no-shell"
        ...     allows = [ToolCall("c1", "notes.read", {})]
        ...     denies = [ToolCall("c1", "shell.run", {})]
    """

    kind = "guard"
    allows: ClassVar[Sequence[Event]] = ()
    denies: ClassVar[Sequence[Event]] = ()
    turns: ClassVar[Sequence[Event]] = ()

    def test_it_denies_and_allows_what_it_should(self) -> None:
        """Check that it denies what it must, and nothing else."""
        self._need("allows", self.allows, "denies", self.denies)

        async def check() -> None:
            for events, wanted in ((self.allows, (Verdict.ALLOW,)), (self.denies, (Verdict.DENY, Verdict.ASK))):
                for event in events:
                    async with self.open_hooks() as (hooks, _):
                        await dispatch(hooks, AgentStart("run-1"))
                        decision = await dispatch(hooks, _filled(event, self.fill))
                    if decision.verdict not in wanted or decision.error is not None:
                        self._wrong(event, listed(wanted), decision)
                    if decision.verdict is Verdict.DENY and not decision.reason.strip():
                        fail(
                            self.label,
                            expected=f"it says why it denies {_named(event)}",
                            happened="its `Deny` has no reason",
                            remedy="write one sentence: what is denied, and what would be allowed",
                        )

        self.run(check)

    def test_it_denies_what_it_cannot_read(self) -> None:
        """Check that a guard that fails denies: it must not catch its own failure and allow."""
        self._need("denies", self.denies)

        async def check() -> None:
            for event in self.denies:
                async with self.open_hooks() as (hooks, _):
                    await dispatch(hooks, AgentStart("run-1"))
                    decision = await dispatch(hooks, _unreadable(_filled(event, self.fill)))
                if decision.verdict is Verdict.ALLOW:
                    fail(
                        self.label,
                        expected=f"it denies {_named(event)} also if reading its arguments fails",
                        happened="it allows it",
                        remedy="do not catch exceptions in a guard: the host denies when a guard raises",
                    )

        self.run(check)

    def test_each_agent_has_a_guard_of_its_own(self) -> None:
        """Check that what one agent does changes nothing for another."""
        self._need("turns", self.turns)

        async def check() -> None:
            async with self.open_host() as host:
                agents = [host.hooks.derive(lambda context: context) for _ in range(2)]
                for hooks in agents:
                    await dispatch(hooks, AgentStart("run-1"))
                for hooks in agents:
                    await self._play(hooks, "another agent's run")

        self.run(check)

    def test_a_new_run_resets_it(self) -> None:
        """Check that what it counted in a run is forgotten when the next one begins, with ``agent_start``."""
        self._need("turns", self.turns)

        async def check() -> None:
            async with self.open_hooks() as (hooks, _):
                for number in range(2):
                    await dispatch(hooks, AgentStart(f"run-{number}"))
                    await self._play(hooks, "the run before")

        self.run(check)

    async def _play(self, hooks: HookRegistry, before: str) -> None:
        for number, event in enumerate(self.turns, 1):
            decision = await dispatch(hooks, _filled(event, self.fill))
            is_last = number == len(self.turns)
            denied = getattr(decision, "verdict", Verdict.ALLOW) is not Verdict.ALLOW
            if is_last != denied:
                expected = "denies" if is_last else "does not deny"
                fail(
                    self.label,
                    expected=f"in each run, it {expected} event {number} of `turns`, {_named(event)}",
                    happened=f"it {'denies' if denied else 'allows'} it, after {before}",
                    remedy="reset what it counts in `agent_start`, and keep it in `self`, not in its class or module",
                )

    async def exercise(self, host: Host) -> None:
        """Dispatch all events."""
        await super().exercise(host)
        async with self.open_agent(host) as agent:
            for event in (*self.allows, *self.denies, *self.turns):
                await dispatch(agent.hooks, _filled(event, self.fill))

    def _need(self, *given: Any) -> None:
        for name, events in zip(given[::2], given[1::2], strict=True):
            if not events:
                pytest.skip(f"no events: set `{name}` in a test class of your own, to check what it decides")

    def _wrong(self, event: Event, wanted: str, decision: Any) -> None:
        said = decision.error.message if decision.error is not None else decision.reason or decision.question
        fail(
            self.label,
            expected=f"its verdict about {_named(event)} is {wanted}",
            happened=f"{decision.verdict}: {said}" if said else str(decision.verdict),
            remedy="correct the guard, or the event",
        )

    def _target(self) -> Any:
        value = self.subject.value
        if isinstance(value, type):
            return value
        found = value.sideband_guards()
        return found[0] if isinstance(found, list | tuple) else found

    def _watched(self, hook: str, steps: Steps) -> Plugin:
        changed = type(self._target().__name__, (self._target(),), {hook: steps.watch(self._function(hook))})
        if isinstance(self.subject.value, type):
            return attrs.evolve(self.subject, value=changed)
        return wrapped(
            self.subject, {"sideband_guards": registering(self.subject.value.sideband_guards, lambda _: changed)}
        )


def _changed(target: Any, functions: Mapping[str, Any]) -> Any:
    """Return an object with the hooks of another one, of which some are other functions."""
    names = [name for name in HOOK_SPECS if hasattr(getattr(target, name, None), "sideband_impl")]
    return SimpleNamespace(**{**{name: getattr(target, name) for name in names}, **functions})


class _UnreadableArguments(Mapping[str, Any]):
    """Arguments that cannot be read."""

    def _fail(self, *_: object) -> Any:
        raise RuntimeError("the arguments cannot be read")

    __getitem__ = __iter__ = __len__ = __contains__ = get = items = keys = values = _fail


def _unreadable(event: Any) -> Any:
    """Return an event whose arguments cannot be read."""
    copy = attrs.evolve(event)
    object.__setattr__(copy, event.replaceable, _UnreadableArguments())
    return copy


def _filled(event: Any, fill: Callable[[Any], Any]) -> Any:
    """Return an event in whose texts the names in braces are replaced."""
    texts = {one.name: getattr(event, one.name) for one in attrs.fields(type(event)) if one.init}
    changed = {name: fill(value) for name, value in texts.items() if isinstance(value, str | Mapping)}
    return attrs.evolve(event, **changed)


def _with_text(event: Any, text: str) -> Any:
    """Return an event whose free texts contain another one."""
    fields = {one.name: getattr(event, one.name) for one in attrs.fields(type(event)) if one.init}
    names = ("text", "prompt", "system_prompt", "content", "instructions", "question")
    changed: dict[str, Any] = {name: text for name in names if isinstance(fields.get(name), str)}
    for name in ("arguments", "params"):
        if isinstance(fields.get(name), Mapping):
            changed[name] = {**fields[name], "note": text}
    return attrs.evolve(event, **changed)


def _named(event: Any) -> str:
    return f"`{getattr(event, 'tool', None) or getattr(event, 'op', None) or event.hook}`"
