"""The levels that a use of an op and a grant reach, without calling plugin code.

A rule only ever lowers a level, and applies to more uses the narrower the capability is. So a use never has a higher
level than the capability that allows it, and a narrower capability never a higher level than a wider one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..suggestions import did_you_mean
from ._capability import Capability, Grant
from ._levels import LIMITED, Level
from ._scope import Scope
from ._spec import OpSpec

__all__ = ["level_of", "reach"]

# Skills choose the values, so their number and size are limited.
_MAX_KNOWN, _MAX_FIELDS, _MAX_LENGTH = 1_024, 64, 256


def level_of(spec: OpSpec, capability: Capability, requested: Mapping[str, str]) -> Level:
    """Return the level of the uses of an op that a capability allows.

    Args:
        spec: the op.
        capability: the capability, with its family's defaults filled in.
        requested: the fields of the requested scope; empty for all uses.
    """
    limits = capability.limits
    return min([spec.level, *(rule.level for rule in spec.lower if rule.applies(limits, requested))])


def level_within(spec: OpSpec, grant: Grant, scopes: Iterable[Scope | None]) -> Level:
    """Return the level of a use of an op that has rules.

    It is the highest over all capabilities that the use could need, not only the first that allows the request: while
    it runs, an op may require other values than it requested, such as the host of a redirect. Only the values that its
    rules and needs name stay the same.

    Args:
        spec: the op.
        grant: the grant of the call.
        scopes: the requested scopes of the family that the op requires; ``None`` for an op that requests none.
    """
    requested = frozenset(
        tuple((name, value) for name in spec.kept if (value := getattr(scope, name, None)) is not None)
        for scope in scopes
    )
    if (known := spec.levels.get((grant, requested))) is not None:
        return known
    held = [one for one in grant.capabilities if one.family == spec.requires]
    found = [
        level_of(spec, capability, dict(fields))
        for fields in requested
        for capability in held
        if all(capability.admits(name, (value,)) for name, value in fields)
    ]
    level = max(found, default=spec.level)
    values = [value for fields in requested for _, value in fields]
    if len(values) <= _MAX_FIELDS and max(map(len, values), default=0) <= _MAX_LENGTH:
        if len(spec.levels) >= _MAX_KNOWN:
            spec.levels.clear()
        spec.levels[grant, requested] = level
    return level


def reach(specs: Iterable[OpSpec], grant: Grant) -> Level:
    """Return the highest level that the uses of these ops have which a grant allows.

    Args:
        specs: the ops.
        grant: the grant, with the defaults of its families filled in.
    """
    highest = Level.SAFE
    for spec in specs:
        held = [one for one in grant.capabilities if one.family == spec.requires]
        if any(all(one.admits(name, values) for name, values in spec.needs.items()) for one in held):
            highest = max(highest, *(level_of(spec, one, {}) for one in held))
    return highest


def level_problem(spec: OpSpec, scope: type[Scope] | None) -> str | None:
    """Return what is wrong with ``lower`` and ``needs`` of an op and how to correct it, or ``None``.

    Args:
        spec: the op.
        scope: the scope of its family.
    """
    if spec.lower and spec.requires != spec.family:
        return f"`lower` applies to capabilities of its own family; set `requires={spec.family!r}`, or remove it"
    if spec.needs and spec.scope is None:
        return "`needs` has no effect without `scope`, the function that returns what a call needs; add it"
    return next(_problems(spec, scope), None)


def _problems(spec: OpSpec, scope: type[Scope] | None) -> Iterator[str]:
    is_own = spec.requires == spec.family
    for name, values in spec.needs.items():
        if is_own:
            yield from _name_problems("needs", name, scope)
        # The scope of another family is unknown here; with a wrong field or value, the gate denies the op.
        yield from _value_problems("needs", name, values, scope if is_own else None)
    for number, rule in enumerate(spec.lower):
        key = f"lower[{number}]"
        if rule.level >= spec.level:
            yield (
                f"`{key}` has the level {rule.level.name}, which is not below the op's level {spec.level.name}; raise "
                "the level of the op, or remove the rule"
            )
        if not rule.fields:
            yield f"`{key}` has no fields, so it applies to every use; lower the level of the op instead"
        for name, allowed in rule.fields:
            yield from _name_problems(key, name, scope)
            if allowed is not LIMITED:
                yield from _value_problems(key, name, allowed, scope)
        if rule.fields in [earlier.fields for earlier in spec.lower[:number]]:
            yield f"`{key}` has the same fields as an earlier rule; remove one of them"


def _name_problems(key: str, name: str, scope: type[Scope] | None) -> Iterator[str]:
    known = scope.field_names() if scope else ()
    if name not in known:
        fields = f"the fields of the scope are {', '.join(known)}" if known else "its family has no `scope`; add one"
        yield f"`{key}.{name}` is an unknown field{did_you_mean(name, known)}; {fields}"


def _value_problems(key: str, name: str, values: Any, scope: type[Scope] | None) -> Iterator[str]:
    if not isinstance(values, tuple) or not values or not all(isinstance(value, str) for value in values):
        yield f"`{key}.{name}` must be a tuple of one or more texts such as ('read',), got {values!r}"
        return
    valid = scope.valid_values.get(name) if scope else None
    for value in values:
        if valid is not None and value not in valid:
            yield f"`{key}.{name}` has the invalid value {value!r}{did_you_mean(value, valid)}; use {', '.join(valid)}"
        if value.endswith("*"):
            yield f"`{key}.{name}` has the value {value!r}, but patterns are not supported; list the values"
