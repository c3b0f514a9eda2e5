"""Determine the rights of calls and plugins, and the source of each: the caller, the policy, or the user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attrs import evolve, frozen

from ..approvals import ApprovalNeeded, ApprovalRequest, Approvals, Approver, StoredApproval
from ..broker import Ops
from ..broker._dispatch import Dispatch, RightsOwner
from ..broker._gate import PluginGrant
from ..broker._values import secret_fields
from ..contexts import SkillUses
from ..errors import ConfigurationError
from ..loading import SkillError, SkillSpec, ToolSpec
from ..ops import Capability, CapabilityInvalid, Grant, Origin
from ..settings import COMMAND_LINE, LoadedSettings
from ..workers import GrantRequired
from ._grants import RememberedGrants


class Rights:
    """The rights of skills on one host.

    Args:
        home: the host's state folder, which stores grants.
        settings: the settings, with the configured grants.
        ops: the op families, to validate capabilities.
        approvals: asks for grants.
        added: capabilities by skill that its calls get in addition to those that it requests; never stored.
    """

    def __init__(
        self,
        home: Path,
        settings: LoadedSettings,
        ops: Ops,
        approvals: Approvals,
        added: Mapping[str, Iterable[str]],
    ) -> None:
        self._settings = settings
        self._ops = ops
        self._approvals = approvals
        self._added = {skill: tuple(capabilities) for skill, capabilities in added.items()}
        self._remembered = RememberedGrants(home)
        # By skill: the skill and its stored grant, from which the rights were determined.
        self._complete: dict[str, tuple[SkillSpec, Grant, tuple[Grant, Mapping[str, str]]]] = {}

    async def of(
        self,
        skill: SkillSpec,
        tool: ToolSpec,
        digest: str,
        *,
        arguments: Mapping[str, Any],
        origin: Origin,
        approver: Approver | None,
        given: tuple[str, ...] | None,
    ) -> tuple[Grant, Mapping[str, str]]:
        """Return the rights of a call and the source of each capability.

        Args:
            skill: the skill whose tool is called.
            tool: the tool, for the request for approval.
            digest: the digest of the skill's current content, under which grants are stored.
            arguments: the arguments of the call, on which an approval with the scope ``once`` depends.
            origin: the origin of the call.
            approver: answers the request; ``None`` without an approver.
            given: the rights that the caller gives; ``None`` for those that the skill requests.

        Raises:
            CapabilityInvalid: if ``given`` contains an invalid or unknown capability.
            GrantRequired: if the skill requests more than it was granted, and no person grants it now.
            SkillError: if the skill requests an unknown capability.
        """
        if given is not None:
            grant = await self._ops.grant(given)
            return grant, dict.fromkeys(grant.texts(), "call")
        stored = self._remembered.get(digest)
        known = self._complete.get(skill.key)
        if known is not None and known[0] is skill and known[1] is stored:
            return known[2]
        missing, rights = await self._held(skill, stored)
        if missing:
            request = self._request(skill, tool, digest, arguments=arguments, missing=missing, origin=origin)
            request = evolve(request, level=await self._ops.reach(missing))
            # The question is about the skill, whichever tool is called.
            answer = await self._approvals.decide(request, approver, about=f"{digest} {missing}")
            if answer is None:
                raise GrantRequired(skill.name, missing.texts(), needed=ApprovalNeeded(request))
            if not answer.allowed:
                raise GrantRequired(skill.name, missing.texts(), refused=answer.reason)
        else:
            self._complete[skill.key] = skill, stored, rights
        return rights

    async def missing(self, skill: SkillSpec, digest: str) -> Grant:
        """Return the capabilities that a skill requests and was not granted, without asking for them.

        Raises:
            SkillError: if the skill requests an unknown capability.
        """
        return (await self._held(skill, self._remembered.get(digest)))[0]

    async def _held(self, skill: SkillSpec, stored: Grant) -> tuple[Grant, tuple[Grant, Mapping[str, str]]]:
        """Return what a skill requests and was not granted, and the rights that it has with it."""
        wanted = await self._wanted(skill)
        policy = await _by_policy(self._settings, self._ops, skill)
        added = await self._ops.grant(self._added.get(_holder(skill, self._added), ()))
        remembered = await self._ops.grant(stored.texts())
        missing = Grant.of([*policy.capabilities, *added.capabilities, *remembered.capabilities]).missing(wanted)
        return missing, _rights(wanted, policy, added, missing)

    def _request(
        self,
        skill: SkillSpec,
        tool: ToolSpec,
        digest: str,
        *,
        arguments: Mapping[str, Any],
        missing: Grant,
        origin: Origin,
    ) -> ApprovalRequest:
        # Only what the user sees: the rest comes from the policy or from this host, and ends with it.
        shown = _shown(digest, skill.name, str(skill.source), missing, tool=tool.full_name, arguments=arguments)
        question = f"Grant these capabilities to the skill `{skill.name}`?"
        return self._approvals.request(
            "grant", f"skill:{skill.key}", question, shown, origin=origin, code=digest, grants=missing.texts()
        )

    async def _wanted(self, skill: SkillSpec) -> Grant:
        try:
            return await self._ops.grant(skill.capabilities)
        except CapabilityInvalid as error:
            problem = f"the skill `{skill.name}` requests an unknown capability: {error.message}"
            hint = f"in `sideband.capabilities` of {skill.source / 'SKILL.md'}, {error.hint}"
            raise SkillError(problem, hint=hint) from error


@frozen(eq=False)
class PluginRights:
    """The rights of the plugins of one host: what they declare in ``uses``, as far as it was given to ``plugin:NAME``.

    With ``SkillUses``, it is what was given to this version of a skill.

    Args:
        settings: the settings, with the configured grants.
        ops: the op families, to validate capabilities.
        approvals: asks for grants.
        approver: answers the requests of calls without an agent; ``None`` without an approver.
        added: capabilities by holder that this host gives in addition; never stored.
        remembered: the grants that were given before.
    """

    _settings: LoadedSettings
    _ops: Ops
    _approvals: Approvals
    _approver: Approver | None
    _added: Mapping[str, Iterable[str]]
    _remembered: RememberedGrants

    async def of(self, owner: RightsOwner) -> PluginGrant:
        """See ``OwnRights``. A grant that is revoked no longer counts, and what is not declared is never given."""
        declared = await self._ops.grant(owner.uses)
        skill = owner.skill
        if skill is None:
            policy = await _configured(self._settings, self._ops, owner.name)
        else:
            policy = await _by_policy(self._settings, self._ops, skill)
        added = owner.name if skill is None else _holder(skill, self._added)
        given = {
            "policy": policy,
            "call": await self._ops.grant(self._added.get(added, ())),
            "remembered": await self._ops.grant(self._remembered.get(owner.holder).texts()),
        }
        whole = Grant.of(one for grant in given.values() for one in grant.capabilities)
        held = declared.narrow(whole)
        sources = {
            str(one): source for one in held.capabilities for source in given if given[source].covers(Grant((one,)))
        }
        return PluginGrant(held, whole.missing(declared), sources)

    async def holds(self, owner: RightsOwner, origin: Origin) -> bool:
        """See ``OwnRights``."""
        missing = (await self.of(owner)).missing
        if not missing:
            return True
        request = self._approvals.request(
            "grant", _subject(owner), "", {}, origin=origin, code=owner.holder, grants=missing.texts()
        )
        return await self._approvals.is_granted(request)

    async def ask(self, dispatch: Dispatch, owner: RightsOwner, missing: Grant) -> StoredApproval:
        """See ``OwnRights``. The answer holds for the plugin of this name and distribution.

        Raises:
            ApprovalNeeded: if there is no approver.
        """
        record, call, skill = owner.record, dispatch.call, owner.skill
        if skill is None:
            callers = "tools" if record.kind == "tool" else "ops"
            name, source = record.name, f"{record.distribution} {record.version}"
            question = f"Grant these capabilities to the plugin `{name}`, for every caller of its {callers}?"
        else:
            name, source = skill.name, skill.source
            question = f"Grant these capabilities to the skill `{name}`?"
        shown = _shown(owner.holder, name, source, missing, op=dispatch.op, arguments=_arguments(dispatch))
        request = self._approvals.request(
            "grant",
            _subject(owner),
            question,
            shown,
            origin=dispatch.origin,
            exact=[shown, dispatch.valid, call.code],
            code=owner.holder,
            plugins=[dispatch.plugin],
            grants=missing.texts(),
            level=await self._ops.reach(missing),
        )
        approver = (call.hooks and call.hooks.approver) or self._approver
        answer = await self._approvals.decide(request, approver, about=f"{owner.holder} {missing}")
        if answer is None:
            needed = ApprovalNeeded(request)
            if call.attempt is not None:
                call.attempt.wait_for(needed)
            raise needed
        return answer


def _arguments(dispatch: Dispatch) -> Mapping[str, Any]:
    """Return the recordable parameters, which the record shortens: users cannot accept what they do not see."""
    shown = dispatch.recorded.keys() & {*dispatch.found.spec.record} - secret_fields(dispatch.valid)
    return {**dispatch.recorded, **dispatch.valid.model_dump(include=shown)}


def _subject(owner: RightsOwner) -> str:
    return f"plugin:{owner.record.name}" if owner.skill is None else f"skill:{owner.skill.key}"


def _shown(holder: str, name: str, source: str, missing: Grant, **call: Any) -> Mapping[str, Any]:
    """Return what a request for a grant shows: who gets which capabilities, and the call that needs them."""
    remarks = {str(one): one.remark for one in missing.capabilities if one.remark}
    texts = missing.texts()
    return {"holder": holder, "name": name, "source": source, "capabilities": texts, "remarks": remarks, **call}


async def _configured(settings: LoadedSettings, ops: Ops, holder: str) -> Grant:
    """Return what the configuration grants to a skill or plugin.

    Raises:
        ConfigurationError: if it contains an invalid capability.
    """
    try:
        return await ops.grant(settings.settings.grants.get(holder, ()))
    except CapabilityInvalid as error:
        source = settings.sources.get(("grants", holder), "")
        raise ConfigurationError(f"grants.{holder}", error.message, source=source, hint=error.hint) from error


async def _by_policy(settings: LoadedSettings, ops: Ops, skill: SkillSpec | SkillUses) -> Grant:
    """Return what the configuration grants to a skill by its name.

    Raises:
        ConfigurationError: if it contains an invalid capability.
    """
    name = _holder(skill, settings.settings.grants)
    if skill.of_project and settings.sources.get(("grants", name)) not in (COMMAND_LINE, str(settings.project_file)):
        # The project chose the name, so the user may have meant another skill.
        return Grant()
    return await _configured(settings, ops, name)


def _holder(skill: SkillSpec | SkillUses, grants: Mapping[str, object]) -> str:
    """Return the name under which grants name a skill. No skill can be the holder of the rights of a plugin."""
    names = [name for name in (skill.key, skill.name) if not name.startswith("plugin:")]
    return next((name for name in names if name in grants), "")


def _rights(wanted: Grant, policy: Grant, added: Grant, granted_now: Grant) -> tuple[Grant, Mapping[str, str]]:
    grant = Grant.of([*wanted.capabilities, *added.capabilities])
    return grant, MappingProxyType({str(one): _source(one, policy, added, granted_now) for one in grant.capabilities})


def _source(capability: Capability, policy: Grant, added: Grant, granted_now: Grant) -> str:
    for source, grant in (("policy", policy), ("call", added)):
        if grant.covers(Grant((capability,))):
            return source
    return "person" if capability in granted_now.capabilities else "remembered"
