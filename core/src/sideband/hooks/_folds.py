"""Combine answers into an outcome, with one fold for each kind of hook.

A fold is synchronous code without I/O. It yields the next implementation, accepts its answer, and holds the outcome.
The dispatcher does the rest: it calls and awaits implementations, enforces the deadline, and reports failures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Generic, Literal, TypeVar

import attrs

from ._changed import ToolResult
from ._decision import Decision, Note, Said, Verdict
from ._errors import HookError, HookResultInvalid
from ._event import CollectEvent, DecideEvent, Event, Failure, FirstEvent, UpdateEvent
from ._frozen import freeze, same
from ._implementations import Implementation
from ._order import Phase
from ._results import Allow, Ask, Cancel, Deny, Replace
from ._spec import HookSpec

E = TypeVar("E", bound=Event)
T = TypeVar("T")

Validate = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""A function that validates replaced arguments, and returns them converted."""

_MAX_REPLACEMENTS = 16
"""How many times the arguments of one event may be replaced, by all plugins together, before it is denied."""


@attrs.frozen
class Collected(Generic[T]):
    """An item and the plugin that returned it.

    Attributes:
        plugin: the entry-point name of the plugin.
        value: the item.
        package: the distribution and version of the plugin; empty if unknown.
    """

    plugin: str
    value: T
    package: str = attrs.field(default="", eq=False)


class Fold(Generic[E]):
    """The state of emitting one event: each implementation is called once, in order. This base class ignores answers.

    Args:
        spec: the spec of the hook.
        implementations: the implementations, in order.
        event: the event.
        outcome: the outcome if no implementation has an answer.
    """

    __slots__ = ("_implementations", "_position", "_spec", "event", "outcome")

    def __init__(
        self, spec: HookSpec, implementations: Sequence[Implementation], event: E, outcome: Any = None
    ) -> None:
        self.event = event
        self.outcome = outcome
        self._spec = spec
        self._implementations = implementations
        self._position = 0

    def __iter__(self) -> Iterator[Implementation]:
        """Yield the implementations in the order in which they must be called."""
        for one in self._implementations:
            self._position += 1
            yield one

    def waiting(self) -> Sequence[Implementation]:
        """Return the implementations that have not been called."""
        return self._implementations[self._position :]

    def check(self, implementation: Implementation, answer: Any) -> None:
        """Reject an answer of a type that the spec does not allow.

        Raises:
            HookResultInvalid: if the type is wrong.
        """
        spec = self._spec
        allowed: tuple[type[Any], ...] = spec.may_return
        if not isinstance(answer, allowed):
            raise self._invalid(implementation, answer)
        for item in answer if spec.items else ():
            if not isinstance(item, spec.items or object):
                raise self._invalid(implementation, item)

    def _invalid(self, one: Implementation, found: object) -> HookResultInvalid:
        return HookResultInvalid(self._spec.name, one.plugin, found, allowed=self._spec.returns, package=one.package)

    def accept(self, implementation: Implementation, answer: Any) -> bool:  # noqa: ARG002  for folds that use answers
        """Process a checked answer, which is never ``None``. Return whether the dispatch ends."""
        return False

    def reject(self, implementation: Implementation, error: HookError) -> bool:  # noqa: ARG002  for folds that use errors
        """Apply the failure policy to a failed implementation. Return whether the dispatch ends."""
        return False


class UpdateFold(Fold[UpdateEvent[Any]]):
    """A fold in which each implementation sees the changes of the previous ones."""

    __slots__ = ()

    def accept(self, implementation: Implementation, answer: Any) -> bool:
        """Change the event, or end the dispatch if the result is not an event of the same type."""
        self.outcome = self.event.changed(answer, implementation.plugin)
        if type(self.outcome) is not type(self.event):
            return True
        self.event = self.outcome
        return False

    def reject(self, implementation: Implementation, error: HookError) -> bool:  # noqa: ARG002  overrides the base method
        """Skip the implementation, unless it is a guard that had to check a result before the model sees it."""
        withhold = self._spec.on_failure is Failure.WITHHOLD_IF_GUARD and implementation.phase is Phase.GUARD
        if withhold and isinstance(self.event, ToolResult):
            self.outcome = self.event.withheld(implementation.plugin, implementation.package)
        return withhold


class CollectFold(Fold[CollectEvent[Any]]):
    """A fold that collects the items of all answers."""

    __slots__ = ()

    def accept(self, implementation: Implementation, answer: Any) -> bool:
        """Add the items of an answer."""
        one = implementation
        self.outcome += [Collected(one.plugin, item, one.package) for item in self.event.collected(answer)]
        return False


class FirstFold(Fold[FirstEvent[Any]]):
    """A fold whose outcome is the first answer, with its ``plugin`` set."""

    __slots__ = ()

    def accept(self, implementation: Implementation, answer: Any) -> bool:
        """Accept the first answer and end the dispatch."""
        self.outcome = attrs.evolve(answer, plugin=implementation.plugin)
        return True


class CallFold(Fold[Event]):
    """A fold of one function, whose outcome is what it returns."""

    __slots__ = ("error",)

    def __init__(self, spec: HookSpec, implementations: Sequence[Implementation], event: Event) -> None:
        super().__init__(spec, implementations, event)
        self.error: HookError | None = None

    def check(self, implementation: Implementation, answer: Any) -> None:
        """Accept an answer of any type."""

    def accept(self, implementation: Implementation, answer: Any) -> bool:  # noqa: ARG002  overrides the base method
        """Keep the answer."""
        self.outcome = answer
        return True

    def reject(self, implementation: Implementation, error: HookError) -> bool:  # noqa: ARG002  overrides the base method
        """Keep the error."""
        self.error = error
        return True


class DecideFold(Fold[DecideEvent]):
    """A fold in which the first ``Deny`` wins, then ``Ask``, then ``Allow``. All answers refer to the final arguments.

    A ``Replace`` invalidates the answers to earlier arguments: after the last implementation, those that gave them are
    called again, in order, until the arguments no longer change. An implementation is not called with its own
    replacement, and a ``Replace`` with equal arguments counts as an ``Allow``.
    """

    __slots__ = ("_answers", "_current", "_seen", "_validate", "_version")

    def __init__(
        self,
        spec: HookSpec,
        implementations: Sequence[Implementation],
        event: DecideEvent,
        validate: Validate | None = None,
    ) -> None:
        super().__init__(spec, implementations, event)
        self._validate = validate
        self._version = 0
        self._seen = [-1] * len(implementations)
        self._current = 0
        self._answers: list[tuple[int, Said]] = []

    def __iter__(self) -> Iterator[Implementation]:
        """Yield each implementation once, then repeatedly those that have not seen the current arguments."""
        for index, one in enumerate(self._implementations):
            self._current = index
            self._seen[index] = self._version
            if self._concerns(one):
                yield one
        while self._version:
            index = next((index for index, seen in enumerate(self._seen) if seen != self._version), -1)
            if index < 0:
                return
            self._answers = [
                (position, answer)
                for position, answer in self._answers
                if position != index or answer.answer == "replace"
            ]
            self._current = index
            self._seen[index] = self._version
            if self._concerns(self._implementations[index]):
                yield self._implementations[index]

    def _concerns(self, one: Implementation) -> bool:
        return one.constraints.level <= getattr(self.event, "level", one.constraints.level)

    def waiting(self) -> Sequence[Implementation]:
        """Return the implementations that have not seen the current arguments."""
        return [one for one, version in zip(self._implementations, self._seen, strict=True) if version != self._version]

    @property
    def decision(self) -> Decision:
        """The decision so far, or the final one if the dispatch has ended."""
        if self.outcome is not None:
            denial: Decision = self.outcome
            return denial
        if not self._answers:
            return Decision(Verdict.ALLOW, self.event.final_arguments)
        questions = self._notes("ask")
        return Decision(
            verdict=Verdict.ASK if questions else Verdict.ALLOW,
            arguments=self.event.final_arguments,
            plugin=questions[0].plugin if questions else None,
            notes=self._notes("allow"),
            questions=questions,
            replaced_by=tuple(self._replaced_by()),
            said=tuple(answer for _, answer in self._answers),
        )

    def accept(self, implementation: Implementation, answer: Any) -> bool:
        """Process an answer. Earlier answers of the same implementation have already been removed."""
        plugin = implementation.plugin
        match answer:
            case Deny():
                return self._deny(plugin, answer)
            case Cancel():
                return self._deny(plugin, Deny(answer.reason))
            case Ask():
                self._add(plugin, "ask", answer.question, answer)
            case Allow() if answer.note:
                self._add(plugin, "allow", answer.note)
            case Replace():
                return self._replace(plugin, answer.arguments)
        return False

    def reject(self, implementation: Implementation, error: HookError) -> bool:
        """Deny the event if the failure policy requires it."""
        if self._spec.on_failure is not Failure.DENY:
            return False
        plugin = implementation.plugin
        reason = f"{error.message}; an event that cannot be checked is denied"
        return self._deny(plugin, Deny(reason, hint=error.hint), error)

    def _add(
        self, plugin: str, answer: Literal["allow", "replace", "ask", "deny"], text: str = "", ask: Ask | None = None
    ) -> None:
        self._answers.append((self._current, Said(plugin, answer, text, ask)))

    def _notes(self, answer: Literal["allow", "ask"]) -> tuple[Note, ...]:
        """Return the texts of these answers, in the order of the implementations rather than of time."""
        in_order = sorted(self._answers, key=itemgetter(0))
        return tuple(Note(one.plugin, one.text) for _, one in in_order if one.answer == answer)

    def _replaced_by(self) -> list[str]:
        return [answer.plugin for _, answer in self._answers if answer.answer == "replace"]

    def _deny(self, plugin: str, denial: Deny, error: HookError | None = None) -> bool:
        self._add(plugin, "deny", denial.reason)
        self.outcome = attrs.evolve(
            self.decision,
            verdict=Verdict.DENY,
            plugin=plugin,
            reason=denial.reason,
            hint=denial.hint,
            halt=denial.halt,
            error=error,
            questions=(),
            said=tuple(answer for _, answer in self._answers),
        )
        return True

    def _replace(self, plugin: str, arguments: Mapping[str, Any]) -> bool:
        valid = freeze(self._validate(arguments) if self._validate else arguments)
        if same(valid, self.event.final_arguments):
            return False
        replaced_by = self._replaced_by()
        if len(replaced_by) == _MAX_REPLACEMENTS:
            rivals = ", ".join(f"`{name}`" for name in sorted({plugin, *replaced_by}))
            return self._deny(plugin, Deny(f"{rivals} keep replacing each other's arguments"))
        self.event = self.event.with_arguments(valid)
        self._add(plugin, "replace")
        self._version += 1
        self._seen[self._current] = self._version
        return False
