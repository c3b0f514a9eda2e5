"""What clients are offered: a view that is chosen at the start, and only narrowed by rules."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Self

from attrs import frozen
from sideband.errors import UsageError
from sideband.suggestions import did_you_mean

if TYPE_CHECKING:
    from sideband import Host


@frozen
class Offer:
    """The tools and skills that clients are offered.

    Attributes:
        tools: the names of tools, as an agent knows them; ``None`` for those of its configuration.
        sources: the sources of tools; ``None`` for all.
        skills: the names of the skills whose texts are offered; ``None`` for all.
    """

    tools: tuple[str, ...] | None = None
    sources: tuple[str, ...] | None = ("skill *",)
    skills: Collection[str] | None = None

    @classmethod
    async def of(cls, host: Host, tools: Sequence[str] | None, skills: Sequence[str] | None) -> Self:
        """Return the offer for named tools and skills; all tools of skills if nothing is named.

        Raises:
            UsageError: if a skill does not exist.
        """
        if tools is None and skills is None:
            return cls()
        known = {name: one for one in (await host.skills()).skills for name in (one.name, one.key)}
        for name in skills or ():
            if name not in known:
                raise UsageError(
                    f"--skills names the unknown skill `{name}`{did_you_mean(name, known)}",
                    hint="run `sideband skills list` to see all skills, and why a skill is not loaded",
                )
        found = {known[name].name: known[name] for name in skills or ()}
        if tools is None:
            return cls(None, tuple(f"skill {one.key}" for one in found.values()), frozenset(found))
        return cls((*tools, *(f"{one.key}.*" for one in found.values() if one.tools)), None, frozenset(found))

    def has_skill(self, name: str) -> bool:
        """Return whether the texts of a skill are offered."""
        return self.skills is None or name in self.skills

    @property
    def has_sources(self) -> bool:
        """Whether tools of sources may be offered, which list them at their own pace."""
        return self.sources is None
