"""The gate: check whether the grant that the host holds allows an op."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from ..ops import Capability, Grant, OpDenied, OpSpec, Scope
from ..ops._errors import granting

# Percent-encoding is slow. Encoding the megabytes that a skill can send would delay all other calls.
_MAX_QUOTED = 4_096


def check_op(grant: Grant, spec: OpSpec, params: Any) -> Iterator[Capability]:
    """Yield the capabilities that allow ``spec`` with these validated parameters.

    Raises:
        OpDenied: if no capability allows it.
    """
    if spec.requires is None:
        return
    if spec.scope is None:
        yield _any_of(grant, spec)
        return
    wanted = spec.scope(params)
    for scope in (wanted,) if isinstance(wanted, Scope) else tuple(wanted):
        yield check_scope(grant, spec.name, scope, known_later=scope.known_later)


def check_scope(grant: Grant, op: str, scope: Scope, *, known_later: Collection[str] = ()) -> Capability:
    """Return the capability that allows this scope.

    Args:
        grant: the grant of the call.
        op: the name of the op, for the message.
        scope: the requested scope.
        known_later: fields that are checked later if the scope does not set them.

    Raises:
        OpDenied: if no capability allows the scope. The message has the missing capability and the grant.
    """
    family, fields = scope.family, scope.fields()
    if (capability := grant.match(family, fields, known_later=known_later)) is not None:
        return capability
    longest = max(fields, key=lambda name: len(fields[name]), default="")
    if longest and len(fields[longest]) > _MAX_QUOTED:
        # Omit the whole value: a truncated one could end with a part of a secret, which would not be redacted.
        what = f"`{family}:{longest}` with a value of {len(fields[longest]):,} characters"
        raise _denied(grant, op, what, "request a shorter value")
    raise _missing(grant, op, Capability.exactly(family, fields))


def check_used(grant: Grant, op: str, used: Grant) -> None:
    """Check that the grant covers the capabilities that an earlier effect used.

    Raises:
        OpDenied: if it does not.
    """
    for missing in grant.missing(used).capabilities:
        raise _missing(grant, op, missing)


def _any_of(grant: Grant, spec: OpSpec) -> Capability:
    family = spec.requires or ""
    for capability in grant.capabilities:
        if capability.family == family:
            return capability
    raise _missing(grant, spec.name, Capability(family))


def _missing(grant: Grant, op: str, missing: Capability) -> OpDenied:
    hint = f"grant it with {granting(missing)}; skills request it under `sideband.capabilities` in SKILL.md"
    return _denied(grant, op, f"`{missing}`", hint)


def _denied(grant: Grant, op: str, what: str, hint: str) -> OpDenied:
    return OpDenied(op, f"{what} is not granted (granted: {grant or 'nothing'})", hint=hint)
