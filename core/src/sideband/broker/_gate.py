"""The gate: check whether the grant that the host holds allows an op."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from attrs import frozen

from ..approvals import StoredApproval
from ..errors import SidebandError
from ..ops import Capability, Grant, Level, OpDenied, OpInternal, OpSpec, Origin, Scope
from ..ops._errors import granting
from ..ops._reach import level_within
from ..plugins._objects import describe
from ._dispatch import Dispatch, RightsOwner
from ._lookup import BoundOp

# Percent-encoding is slow. Encoding the megabytes that a skill can send would delay all other calls.
_MAX_QUOTED = 4_096


def check_grant(dispatch: Dispatch) -> None:
    """Check that the grant allows a dispatch, and set which capabilities do and its level.

    Raises:
        OpDenied: if no capability allows it.
        OpInternal: if the op is internal, and a skill dispatches it.
    """
    # What a worker dispatches belongs to a skill, and is not the effect of another op.
    if dispatch.found.spec.internal and dispatch.within is None and dispatch.call.origin.skill is not None:
        raise OpInternal(dispatch.op)
    # Parameters that are denied have the declared level, and no capability allows them.
    dispatch.reached, dispatch.covering = None, []
    allowed_by, dispatch.reached = _check_op(dispatch.grant, dispatch.found, dispatch.params)
    dispatch.covering = [str(capability) for capability in allowed_by]
    dispatch.used = set(allowed_by)


def check_level(dispatch: Dispatch, highest: Level) -> None:
    """Check that the effect of a skill has no higher level than its grant, which was computed from other ops.

    Args:
        dispatch: a dispatch of an op that requires the capability of another family.
        highest: what the grant reaches with the ops of that family.

    Raises:
        OpDenied: if its level is higher.
    """
    spec = dispatch.found.spec
    if spec.level > highest:
        what = f"it has the level {spec.level.name}, but the granted `{spec.requires}` reaches only {highest.name}"
        hint = f"report to the author of the plugin `{spec.family}` that it must require a capability of its own"
        raise OpDenied(spec.name, what, hint=hint)


@frozen
class PluginGrant:
    """The rights of a plugin of its own.

    Attributes:
        grant: those that it declares and was given.
        missing: those that it declares and was not given.
        sources: who gave each capability: ``policy``, ``call`` or ``remembered``.
    """

    grant: Grant
    missing: Grant
    sources: Mapping[str, str]


class OwnRights(Protocol):
    """Determines the rights of plugins of their own."""

    async def of(self, owner: RightsOwner) -> PluginGrant:
        """Return what was given to a plugin until now."""

    async def holds(self, owner: RightsOwner, origin: Origin) -> bool:
        """Return whether a plugin has all that it declares, also by a grant for this session. The user is not asked."""

    async def ask(self, dispatch: Dispatch, owner: RightsOwner, missing: Grant) -> StoredApproval:
        """Ask for the missing rights of a plugin, and return the answer."""


async def check_own_grant(dispatch: Dispatch, rights: OwnRights, owner: RightsOwner) -> None:
    """Give a dispatch the rights of its owner, and check that they allow it.

    Args:
        dispatch: the dispatch. Its grant is what the owner declares, or less if it narrows that.
        rights: determines the rights.
        owner: the plugin that dispatches it.

    Raises:
        OpDenied: if they do not allow it.
    """
    limit, dispatch.grant = dispatch.grant, Grant()
    held = await rights.of(owner)
    dispatch.sources = held.sources
    # The user is not asked for rights that would not be enough.
    asks = bool(held.missing) and _denied_with(dispatch, limit) is None
    denied = _denied_with(dispatch, held.grant.narrow(limit))
    if denied is None and asks and owner.skill is not None:
        # Its script starts with all that it uses, or not at all.
        denied = OpDenied(dispatch.op, f"`{held.missing}` is not granted")
    answer = await rights.ask(dispatch, owner, held.missing) if denied is not None and asks else None
    if answer is not None and answer.allowed:
        dispatch.sources = {**held.sources, **dict.fromkeys(held.missing.texts(), "person")}
        denied = _denied_with(dispatch, limit)
    if denied is not None:
        raise _without_rights(dispatch, owner, denied, answer, held.missing if asks else None)


def _without_rights(
    dispatch: Dispatch, owner: RightsOwner, denied: OpDenied, answer: StoredApproval | None, missing: Grant | None
) -> OpDenied:
    """Return the error for an op that the rights of its owner do not allow.

    Args:
        dispatch: the dispatch.
        owner: the plugin that dispatches it.
        denied: what is not allowed.
        answer: the answer of the user, if the user was asked.
        missing: the rights that would allow it; ``None`` if none would.
    """
    declare = "declare it in `OpFamily.uses`" if owner.record.kind == "op" else "pass it in `uses`"
    hint = declare if missing is None else f'add it to `[grants]` as "{owner.name}" = {json.dumps(missing.texts())}'
    why = denied.reason
    if answer is not None and not answer.allowed:
        why = "they were not granted"
        if answer.answered is not None:
            why = "the user refused to grant them"
            hint = f"the refusal holds for this run; in the next one, answer yes, or {hint}"
        why += f": {answer.reason}" if answer.reason else ""
    whose = "rights of its own" if owner.skill is None else f"rights of the skill `{owner.skill.name}`"
    what = f"the plugin `{owner.record.name}` requests it with {whose}, and {why}"
    return OpDenied(dispatch.op, what, hint=hint)


def _denied_with(dispatch: Dispatch, grant: Grant) -> OpDenied | None:
    dispatch.grant = grant
    try:
        check_grant(dispatch)
    except OpDenied as error:
        return error
    return None


def level_with(dispatch: Dispatch, params: Any) -> Level:
    """Return the level that a dispatch would have with other parameters: the declared one if they are not granted."""
    with suppress(OpDenied):
        return _check_op(dispatch.grant, dispatch.found, params)[1]
    return dispatch.found.spec.level


def _check_op(grant: Grant, bound: BoundOp, params: Any) -> tuple[Sequence[Capability], Level]:
    """Return the capabilities that allow an op with these validated parameters, and the level of this use.

    Raises:
        OpDenied: if no capability allows it, or the op does not request what it declares that it needs.
    """
    spec = bound.spec
    if spec.requires is None:
        return (), spec.level
    scopes = _requested(bound, params)
    if not scopes:
        return (_any_of(grant, spec),), level_within(spec, grant, (None,)) if spec.lower else spec.level
    allowed = check_scopes(grant, spec.name, scopes, known_later=True)
    own = [one for one in scopes if one.family == spec.requires]
    if spec.needs and not any(all(getattr(one, name, None) in spec.needs[name] for name in spec.needs) for one in own):
        what = "its `scope` returned none of the values in its `needs`, on which its level depends"
        raise OpDenied(spec.name, what, hint=f"report this to the author of the plugin `{spec.family}`")
    return allowed, level_within(spec, grant, own) if spec.lower else spec.level


def _requested(bound: BoundOp, params: Any) -> tuple[Scope, ...]:
    """Return the scopes that an op requests with these validated parameters; empty if it requests none.

    Raises:
        OpDenied: if its function cannot compute them. Its own errors, about the parameters, are passed on.
    """
    spec = bound.spec
    if spec.scope is None:
        return ()
    try:
        wanted = spec.scope(params, bound.plugin.config) if "scope" in spec.configured else spec.scope(params)
        scopes = (wanted,) if isinstance(wanted, Scope) else tuple(wanted)
        problem = next((f"a {type(one).__name__} is not a Scope" for one in scopes if not isinstance(one, Scope)), "")
    except SidebandError:
        raise
    except Exception as error:  # noqa: BLE001  code of a plugin may raise anything
        problem = describe(error)
    if problem:
        what = f"its `scope`, which returns what it needs, failed: {problem}"
        raise OpDenied(spec.name, what, hint=f"report this to the author of the plugin `{spec.family}`")
    return scopes


def exactly(bound: BoundOp, params: Any) -> Sequence[Capability]:
    """Return the capabilities that allow an op with these validated parameters and, if it has a scope, nothing else.

    Empty if it requires no capability, or if they would be too long to be shown, or have an empty value.
    """
    if bound.spec.requires is None:
        return ()
    scopes = _requested(bound, params)
    if not scopes:
        return (Capability(bound.spec.requires),)
    shown = all(0 < len(value) <= _MAX_QUOTED for scope in scopes for value in scope.fields().values())
    return _fewest(scopes) if shown else ()


def check_scopes(grant: Grant, op: str, scopes: Sequence[Scope], *, known_later: bool) -> Sequence[Capability]:
    """Return the capabilities that allow these scopes.

    Args:
        grant: the grant of the call.
        op: the name of the op, for the message.
        scopes: the requested scopes.
        known_later: whether the fields that are known later may be omitted, because they are checked again.

    Raises:
        OpDenied: if no capability allows one of them. The message has all missing capabilities and the grant.
    """
    found = [grant.match(one.family, one.fields(), known_later=one.known_later * known_later) for one in scopes]
    allowed = [one for one in found if one is not None]
    if len(allowed) < len(scopes):
        # All at once: a hint with a part of them would lead to the next refusal.
        raise _denied(grant, op, [scope for scope, one in zip(scopes, found, strict=True) if one is None])
    return allowed


def check_used(grant: Grant, op: str, used: Grant) -> None:
    """Check that the grant covers the capabilities that an earlier effect used.

    Raises:
        OpDenied: if it does not.
    """
    if missing := grant.missing(used).capabilities:
        raise _missing(grant, op, missing)


def _any_of(grant: Grant, spec: OpSpec) -> Capability:
    for capability in grant.capabilities:
        if capability.family == spec.requires:
            return capability
    raise _missing(grant, spec.name, [Capability(spec.requires or "")])


def _denied(grant: Grant, op: str, scopes: Sequence[Scope]) -> OpDenied:
    """Return the error for scopes that no capability allows."""
    for scope in scopes:
        for name, value in scope.fields().items():
            if len(value) > _MAX_QUOTED:
                # Omit the whole value: a truncated one could end with a part of a secret, which would not be redacted.
                what = f"`{scope.family}:{name}` with a value of {len(value):,} characters"
                return _refused(grant, op, what, "request a shorter value")
    return _missing(grant, op, _fewest(scopes))


def _fewest(scopes: Sequence[Scope]) -> list[Capability]:
    """Return the fewest capabilities that allow these scopes and nothing else."""
    exact = [Capability.exactly(one.family, one.fields()) for one in scopes]
    fitted = [capability.fit(type(one)) for capability, one in zip(exact, scopes, strict=True)]
    kept = list(range(len(scopes)))
    for number, scope in enumerate(scopes):
        others = Grant(tuple(fitted[other] for other in kept if other != number))
        if others.match(scope.family, scope.fields(), known_later=scope.known_later):
            kept.remove(number)
    return [exact[number] for number in kept]


def _missing(grant: Grant, op: str, missing: Sequence[Capability]) -> OpDenied:
    options = granting(missing)
    how = f"grant it with {options}" if options else "request less at once"
    what = " ".join(f"`{one}`" for one in missing)
    return _refused(grant, op, what, f"{how}; skills request it under `sideband.capabilities` in SKILL.md")


def _refused(grant: Grant, op: str, what: str, hint: str) -> OpDenied:
    return OpDenied(op, f"{what} is not granted (granted: {grant or 'nothing'})", hint=hint)
