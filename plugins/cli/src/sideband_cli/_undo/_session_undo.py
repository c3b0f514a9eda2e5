"""Undo everything that a session or a run changed: one effect after the other, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen
from sideband.rendering import render

from .._terminal._effect_text import effect_data
from .._terminal._tables import paragraph
from ._plan_text import undo_data
from ._undo_effects import undo_chain

if TYPE_CHECKING:
    from sideband import EffectReport, Host, SidebandError
    from sideband.broker import UndoneStep, UndoPlan
    from sideband.ledger import EffectRecord

_LONGEST_VALUE = 200
_HIDDEN = "…"  # a value that is not recorded
_SUBJECTS = ("path", "url", "binary", "script", "name")


@frozen
class SessionChange:
    """An effect that is in force.

    Attributes:
        record: its record.
        effect: the effect to undo: its own id, or that of the effect that made it again after an undo.
        plan: the plan that was made while later changes were in force.
        waits: whether it may become possible to undo it when later changes have been undone.
    """

    record: EffectRecord
    effect: str
    plan: UndoPlan
    waits: bool


@define(eq=False)
class SessionUndo:
    """What can be undone of a session or a run, and what was.

    Attributes:
        subject: the session or the run, for messages.
        changes: the effects in force, newest first.
        undone: the number of effects that were undone before.
        results: what was undone now, by plan.
        remains: what could not be undone, found while undoing.
        effects: the effects that undid them.
    """

    subject: str
    changes: Sequence[SessionChange]
    undone: int
    results: list[tuple[UndoPlan, Sequence[UndoneStep]]] = field(factory=list, init=False)
    remains: list[str] = field(factory=list, init=False)
    effects: list[EffectReport] = field(factory=list, init=False)

    @classmethod
    async def of(cls, host: Host, subject: str, *, session: str | None, run: str | None) -> SessionUndo:
        """Plan to undo what a session or a run changed. This changes nothing."""
        changes: list[SessionChange] = []
        families: set[str] = set()
        undone = 0
        for record in await host.effects_to_undo(session=session, run=run):
            chain = await undo_chain(host.ledger.folder, record.effect)
            if len(chain) % 2:
                undone += 1
                continue
            effect = chain[-1] if chain else record.effect
            plan = await host.plan_undo(effect)
            family = record.op.partition(".")[0]
            changes.append(SessionChange(record, effect, plan, not plan.steps and family in families))
            families.update({family} if plan.steps else ())
        return cls(subject, changes, undone)

    @property
    def is_possible(self) -> bool:
        """Whether at least one effect can be undone."""
        return any(one.plan.open for one in self.changes)

    @property
    def impossible(self) -> list[str]:
        """What cannot be undone, as far as it is known."""
        return [line for one in self.changes if not one.waits for line in _remains(one.record, one.plan)]

    async def carry_out(self, host: Host) -> SidebandError | None:
        """Undo the effects in order, each by a plan that is made when its turn comes. Return what stopped it."""
        for change in self.changes:
            plan = await host.plan_undo(change.effect)
            self.remains += _remains(change.record, plan)
            if not plan.open:
                continue
            results = await host.undo(plan, on_effect=self.effects.append)
            self.results.append((plan, results))
            if error := next((one.error for one in results if one.error is not None), None):
                return error
        return None

    def describe(self, width: int | None = None) -> str:
        """Describe what will be undone, in order, and what cannot be undone."""
        lines = [f"to undo {self.subject}, newest first:"] if self.is_possible else [f"{self.subject}:"]
        number = 0
        for one in self.changes:
            texts = [f"{render(step.text)} ({step.op})" for step in one.plan.open]
            if one.waits:
                texts = [f"{_about(one.record)}: planned when the steps before it are done"]
            for text in texts:
                number += 1
                lines.append(paragraph(text, f"{number:3}. ", "     ", width=width))
        return "\n".join([*lines, *_listed(self.impossible, width)])

    def describe_result(self, error: SidebandError | None) -> str:
        """Describe what was undone, and what is left."""
        lines = [
            paragraph(f"{'done' if one.error is None else 'failed'}: {render(one.step.text)} ({one.step.op})", "", "  ")
            for _, results in self.results
            for one in results
        ]
        if error is not None:
            lines.append("stopped; undo the same again to continue")
        return "\n".join([*lines, *_listed(self.remains, None)])

    def data(self, *, ended: bool) -> dict[str, Any]:
        """Return the plans, or the results, as data."""
        plans = self.results if ended else [(one.plan, ()) for one in self.changes if not one.waits and one.plan.steps]
        return {
            "undo": self.subject,
            "undone_before": self.undone,
            "plans": [undo_data(plan, results) for plan, results in plans],
            "waiting": [] if ended else [one.effect for one in self.changes if one.waits],
            "remains": self.remains if ended else self.impossible,
            "effects": [effect_data(one) for one in self.effects],
        }


def _remains(record: EffectRecord, plan: UndoPlan) -> list[str]:
    return [f"{_about(record)}: {sentence}" for sentence in plan.remains]


def _about(record: EffectRecord) -> str:
    """Return the op, what it was about, and the id of the effect."""
    subject = next((str(record.params[name]) for name in _SUBJECTS if record.params.get(name, _HIDDEN) != _HIDDEN), "")
    shown = f" `{render(subject[:_LONGEST_VALUE])}`" if subject else ""
    return f"{record.op}{shown} ({record.effect})"


def _listed(sentences: Sequence[str], width: int | None) -> list[str]:
    lines = [paragraph(render(sentence), "  - ", "    ", width=width) for sentence in sentences]
    return ["cannot be undone:", *lines] if lines else []
