"""The gate: whether the grant that the host holds allows what an op asks for."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from ..ops import Capability, Grant, OpDenied, OpSpec, Scope
from ..ops._errors import granting

# Percent-encoding works byte by byte: with the megabytes that a skill can send it would hold up all others.
_LONGEST_QUOTED = 4_096


def check_op(grant: Grant, spec: OpSpec, params: Any) -> Iterator[Capability]:
    """Yield the capabilities that allow ``spec`` with these validated parameters.

    Raises:
        OpDenied: none does.
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
    """The capability that allows a request within this scope.

    Args:
        grant: what is held.
        op: who asks, for the message.
        scope: what is asked for.
        known_later: fields that are compared another time if the scope leaves them open.

    Raises:
        OpDenied: the grant has none; the message says what is missing and what there is.
    """
    family, fields = scope.family, scope.fields()
    if (capability := grant.match(family, fields, known_later=known_later)) is not None:
        return capability
    longest = max(fields, key=lambda name: len(fields[name]), default="")
    if longest and len(fields[longest]) > _LONGEST_QUOTED:
        # Left out whole: its beginning could end with half a secret.
        what = f"`{family}:{longest}` with a value of {len(fields[longest]):,} characters"
        raise _denied(grant, op, what, "ask for something with a shorter name")
    raise _missing(grant, op, Capability.exactly(family, fields))


def _any_of(grant: Grant, spec: OpSpec) -> Capability:
    family = spec.requires or ""
    for capability in grant.capabilities:
        if capability.family == family:
            return capability
    raise _missing(grant, spec.name, Capability(family))


def _missing(grant: Grant, op: str, missing: Capability) -> OpDenied:
    hint = f"grant it with {granting(missing)}; a skill asks for it under `sideband.capabilities` in its SKILL.md"
    return _denied(grant, op, f"`{missing}`", hint)


def _denied(grant: Grant, op: str, what: str, hint: str) -> OpDenied:
    return OpDenied(op, f"{what} is not granted (granted: {grant or 'nothing'})", hint=hint)
