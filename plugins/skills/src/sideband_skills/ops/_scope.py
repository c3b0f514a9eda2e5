"""The scope of ``skills`` capabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs
from sideband.ops import Scope

_NOTHING = "none/"  # not a valid name for a script, a package or a tool


@attrs.frozen
class SkillsScope(Scope, family="skills"):
    """The scope of a `skills` capability: `skills:script=DIGEST/scripts/run.py`, `skills:package=numpy%3E%3D2`.

    Args:
        script: the digest of a skill and a script of it; by default none.
        package: a requirement, as written in the skill; by default none. It may be downloaded and installed.
        allow: a tool that runs without a question while the skill is active; by default none.
    """

    valid_values: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    script: str | None = None
    package: str | None = None
    allow: str | None = None

    # Each scope is about one script, package or tool, and leaves the other fields out.
    known_later = ("script", "package", "allow")

    @classmethod
    def complete(cls, fields: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG003
        """Return the restrictive defaults of omitted fields."""
        return dict.fromkeys(("script", "package", "allow"), (_NOTHING,))

    @classmethod
    def explain(cls, fields: Mapping[str, tuple[str, ...]]) -> str:
        """Return what the user should know about a capability with these fields."""
        if "allow" in fields:
            return "while the skill is active, these tools run without a question"
        if "package" in fields:
            return "these packages are installed, and their code runs in the isolation of skills"
        return "these scripts run in the isolation of skills"
