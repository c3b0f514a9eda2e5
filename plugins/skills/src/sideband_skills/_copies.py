"""Skills with the same name: the first one is loaded, an identical copy is ignored, and any other is reported."""

from __future__ import annotations

from attrs import define, field
from sideband.loading import SkillProblem, SkillSpec

from ._folder_search import Candidate
from ._manifest import Manifest
from ._meter import Meter
from ._skill_files import SkillFiles, content_digest

_MAXIMUM_PLACES = 5


@define
class _Loaded:
    """A loaded skill, its files, and the other skills with its name."""

    spec: SkillSpec
    files: SkillFiles
    is_packaged: bool
    digest: bytes | None = None
    hidden: list[str] = field(factory=list)
    more_hidden: int = 0


@define
class Copies:
    """The loaded skills, by the name part of their tools.

    Args:
        meter: what loading uses.
    """

    meter: Meter
    _loaded: dict[str, _Loaded] = field(factory=dict, init=False)

    @property
    def skills(self) -> tuple[SkillSpec, ...]:
        """The loaded skills, sorted by name."""
        return tuple(one.spec for _, one in sorted(self._loaded.items()))

    def add(self, candidate: Candidate, spec: SkillSpec, files: SkillFiles) -> None:
        """Add a skill whose name is not taken."""
        self._loaded[spec.key] = _Loaded(spec, files, bool(candidate.package))

    def is_taken(self, candidate: Candidate, skill: Manifest | SkillSpec, files: SkillFiles) -> bool:
        """Return whether an earlier skill has the name. Note the skill, unless it is identical to the earlier one.

        Raises:
            LimitReached: if comparing them takes too long.
        """
        first = self._loaded.get(skill.key)
        if first is None:
            return False
        if self._is_same(first, candidate, skill, files):
            return True
        if len(first.hidden) < _MAXIMUM_PLACES:
            first.hidden.append(f"`{candidate.folder}` ({candidate.origin})")
        else:
            first.more_hidden += 1
        return True

    def _is_same(self, first: _Loaded, candidate: Candidate, skill: Manifest | SkillSpec, files: SkillFiles) -> bool:
        # The dependencies of a skill in a package can be those of its distribution.
        if candidate.package or first.is_packaged:
            return False
        if (skill.name, skill.instructions, files.paths) != (
            first.spec.name,
            first.spec.instructions,
            first.spec.files,
        ):
            return False
        if first.digest is None:
            first.digest = content_digest(first.spec.source, first.files, self.meter)
        return first.digest is not None and first.digest == content_digest(candidate.folder, files, self.meter)

    def problems(self) -> list[SkillProblem]:
        """Return one notice for each name that several different skills have."""
        return [_notice(one) for _, one in sorted(self._loaded.items()) if one.hidden]


def _notice(first: _Loaded) -> SkillProblem:
    more = f" and {first.more_hidden:,} more" if first.more_hidden else ""
    return SkillProblem(
        source=str(first.spec.source),
        code="skill.duplicate",
        reason=f"duplicate skill `{first.spec.key}`: using the first, `{first.spec.source}` ({first.spec.origin}), not "
        f"{', '.join(first.hidden)}{more}",
        hint="rename one of them, or remove a folder from the sources",
    )
