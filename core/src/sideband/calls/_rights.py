"""Decides which rights a call has, and who gave each: the caller, the policy, or a person, now or before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from ..broker import Ops
from ..errors import ConfigurationError
from ..loading import SkillError, SkillSpec
from ..ops import Capability, CapabilityInvalid, Grant
from ..settings import LoadedSettings
from ..workers import GrantRequired
from ._grants import RememberedGrants

GrantAsker = Callable[[SkillSpec, Grant], Awaitable[bool]]
"""Asks a person whether a skill may have these capabilities; whether the person said yes."""

_MOST_RIGHTS = 1_024


class Rights:
    """The rights of skills on one host.

    Args:
        home: the host's folder, where grants are remembered.
        settings: has the grants of the configuration.
        ops: checks capabilities against their families.
        asker: asks a person; ``None`` if there is no person to ask.
    """

    def __init__(self, home: Path, settings: LoadedSettings, ops: Ops, asker: GrantAsker | None) -> None:
        self._settings = settings
        self._ops = ops
        self._asker = asker
        self._remembered = RememberedGrants(home)

    async def of(self, skill: SkillSpec, digest: str, given: tuple[str, ...] | None) -> tuple[Grant, Mapping[str, str]]:
        """Return the rights of a call, and who gave each: what was given for it, else granted before, else now.

        Args:
            skill: whose tool is called.
            digest: of the skill as it is now; grants are remembered for it.
            given: the rights that the caller gives; ``None``: those that the skill asks for.

        Raises:
            CapabilityInvalid: ``given`` has one that can't be parsed or is unknown.
            GrantRequired: the skill asks for more than it was granted, and no person grants it now.
            SkillError: the skill asks for a capability that is unknown.
        """
        if given is not None:
            grant = await self._ops.grant(given)
            return grant, dict.fromkeys(grant.texts(), "call")
        wanted = await self._wanted(skill)
        policy = await self._by_policy(skill)
        remembered = await self._ops.grant(self._remembered.get(digest).texts())
        missing = _missing(wanted, policy, remembered)
        if missing:
            if self._asker is None or not await self._asker(skill, missing):
                raise GrantRequired(skill.name, missing.texts())
            self._remembered.remember(digest, skill.name, wanted)
        return wanted, _givers(wanted, policy, missing)

    async def _wanted(self, skill: SkillSpec) -> Grant:
        try:
            return await self._ops.grant(skill.capabilities)
        except CapabilityInvalid as error:
            problem = f"the skill `{skill.name}` asks for what there is not: {error.message}"
            raise SkillError(problem, hint=f"correct `sideband.capabilities` in {skill.source / 'SKILL.md'}") from error

    async def _by_policy(self, skill: SkillSpec) -> Grant:
        grants = self._settings.settings.grants
        name = skill.key if skill.key in grants else skill.name
        try:
            return await self._ops.grant(grants.get(name, ()))
        except CapabilityInvalid as error:
            source = self._settings.sources.get(("grants", name), "")
            raise ConfigurationError(f"grants.{name}", error.message, source=source, hint=error.hint) from error


# What follows from the rights alone is found out once: most calls of a skill have the same.


@lru_cache(maxsize=_MOST_RIGHTS)
def _missing(wanted: Grant, policy: Grant, remembered: Grant) -> Grant:
    return Grant.of([*policy.capabilities, *remembered.capabilities]).missing(wanted)


@lru_cache(maxsize=_MOST_RIGHTS)
def _givers(wanted: Grant, policy: Grant, asked: Grant) -> Mapping[str, str]:
    return MappingProxyType({str(one): _giver(one, policy, asked) for one in wanted.capabilities})


def _giver(capability: Capability, policy: Grant, asked: Grant) -> str:
    if policy.covers(Grant((capability,))):
        return "policy"
    return "person" if capability in asked.capabilities else "remembered"
