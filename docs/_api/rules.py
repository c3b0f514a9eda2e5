"""The rules: each kind of change, and whether it is an addition or a break."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from attrs import frozen

__all__ = ["RULES", "Rule", "Verdict"]


class Verdict(Enum):
    """What a change means for callers, plugins and readers."""

    ADDITION = "addition"
    BREAK = "break"


@frozen
class Rule:
    """One kind of change.

    Attributes:
        name: the name, as waivers use it.
        verdict: what such a change is.
        why: the reason, in one sentence.
    """

    name: str
    verdict: Verdict
    why: str


def _rules(verdict: Verdict, reasons: Mapping[str, str]) -> dict[str, Rule]:
    return {name: Rule(name, verdict, why) for name, why in reasons.items()}


RULES: Mapping[str, Rule] = {
    **_rules(
        Verdict.ADDITION,
        {
            "ability-added": "An op can be previewed, reconciled or undone that could not be before.",
            "added": "What did not exist before is not used by any program.",
            "alias-widened": "Programs ignore the members of a type that they do not know.",
            "answer-added": "An implementation of a hook may return one more type.",
            "base-added": "An instance is also an instance of another class.",
            "code-raised-by-more": "One more class has the code of an error.",
            "default-gained": "An argument may be left out.",
            "egress-dropped": "Guards that allow effects which leave the machine also allow others.",
            "error-offered": "Skills can catch one more error of a family by its name.",
            "idempotence-gained": "An op may be repeated.",
            "level-lowered": "What allowed the higher level also allows the lower one.",
            "more-recorded": "One more parameter is written to the ledger.",
            "need-not-be-implemented": "A member of an abstract class has an implementation now.",
            "opened-to-all": "Plugins of any kind may implement a hook that was for guards only.",
            "opened-to-skills": "Skills may dispatch an op that was internal.",
            "optional": "What had to be passed may be left out.",
            "passed-in-more-ways": "An argument may be passed by position or by name.",
            "removed-as-announced": "The deprecation named this version, and has lasted as long as promised.",
            "requirement-dropped": "An op needs fewer rights.",
            "time-limit-raised": "What was fast enough still is.",
            "type-narrowed-output": "Each returned value is one that callers already handle.",
            "type-widened-input": "Each value that callers pass is still accepted.",
            "values-widened": "Each value that was valid still is.",
            "writable": "An attribute can be assigned that could only be read.",
        },
    ),
    **_rules(
        Verdict.BREAK,
        {
            "ability-lost": "An op can no longer be previewed, reconciled or undone.",
            "alias-changed": "A value of the type may have another form.",
            "answer-lost": "An implementation of a hook may no longer return a type.",
            "argument-moved": "An argument that is passed by position would be taken for another one.",
            "async-changed": "A call must be awaited that was not, or the reverse.",
            "base-removed": "Programs that catch or test for the class no longer find its instances.",
            "changed": "A described property changed that no other rule covers.",
            "class-of-code-changed": "Programs that catch the class no longer see the errors with this code.",
            "default-changed": "Callers that leave out an argument get another result.",
            "default-lost": "Callers must pass an argument that they left out.",
            "egress-added": "Guards may deny an op because its effects can leave the machine.",
            "ends-too-early": "A deprecation lasts for two minor versions, and until a major one from 1.0 on.",
            "error-withdrawn": "Skills can no longer catch an error of a family by its name.",
            "exit-code-changed": "Scripts take the outcome for another one.",
            "failure-policy-changed": "A failing plugin has another effect.",
            "guards-only": "Plugins that are not guards may no longer implement a hook.",
            "hook-kind-changed": "The answers of plugins are combined in another way.",
            "idempotence-lost": "An op that was repeated safely no longer may be.",
            "internal": "Skills can no longer dispatch an op.",
            "kind-changed": "The name stands for another kind of thing.",
            "less-recorded": "A parameter is missing in new lines of the ledger.",
            "level-raised": "Policies and guards that allowed an op may deny it.",
            "must-be-implemented": "Existing implementations lack a member or a parameter of an interface.",
            "no-longer-promised": "What was always present may be absent.",
            "passed-in-fewer-ways": "An argument can no longer be passed by position, or by name.",
            "read-only": "Callers can no longer assign an attribute.",
            "removed": "Programs that use it fail.",
            "required": "Callers must pass what they did not know of or left out.",
            "requirement-raised": "Grants that were sufficient no longer are.",
            "retyped": "Values of one type are replaced by those of another one.",
            "retryable-changed": "Programs retry what never succeeds, or give up too early.",
            "time-limit-lowered": "What was fast enough may be too slow.",
            "type-narrowed-input": "A value that callers pass may be rejected.",
            "type-widened-output": "Callers may get a value that they do not handle.",
            "value-changed": "Stored or compared values no longer match.",
            "values-narrowed": "A value that was valid is rejected.",
        },
    ),
}  # fmt: skip
"""All rules by name."""
