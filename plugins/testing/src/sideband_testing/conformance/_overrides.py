"""Standard tests can be overridden only by name, with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PACKAGE = __package__


class OverrideInvalid(TypeError):
    """A class overrides a standard test without an entry in ``overrides``, or with an invalid one."""

    def __init__(self, cls: type, problem: str, remedy: str) -> None:
        super().__init__(f"conformance class `{cls.__name__}`: {problem}: {remedy}")


def check_overrides(cls: type, base: type) -> None:
    """Check that a class names each standard test that it overrides, and gives a reason.

    Args:
        cls: the class.
        base: the class from which all conformance classes are derived.

    Raises:
        OverrideInvalid: if it does not.
    """
    if cls.__module__.startswith(f"{_PACKAGE}."):
        return
    overrides: Any = getattr(cls, "overrides", {})
    if not isinstance(overrides, Mapping):
        raise OverrideInvalid(cls, f"`overrides` is a {type(overrides).__name__}", 'write {"test_…": "the reason"}')
    standard = _standard_tests(cls)
    for name, reason in overrides.items():
        if name not in standard:
            known = ", ".join(sorted(standard))
            raise OverrideInvalid(
                cls, f"`overrides` names `{name}`, which is not a standard test of it", f"use {known}"
            )
        if not isinstance(reason, str) or not reason.strip():
            raise OverrideInvalid(cls, f"`overrides` gives no reason for `{name}`", "say why it does not apply")
    for name, function in standard.items():
        if name not in overrides and getattr(cls, name, None) is not function:
            remedy = f'write the reason: overrides = {{"{name}": "…"}}, or give your test another name'
            raise OverrideInvalid(cls, f"it redefines the standard test `{name}`", remedy)
    if cls.__init_subclass__.__func__ is not base.__init_subclass__.__func__:  # type: ignore[attr-defined]
        raise OverrideInvalid(cls, "it redefines `__init_subclass__`, which checks this", "do not")


def _standard_tests(cls: type) -> Mapping[str, Any]:
    """Return the tests of the conformance classes from which a class is derived, by name."""
    found: dict[str, Any] = {}
    for one in reversed(cls.__mro__):
        if one.__module__.startswith(f"{_PACKAGE}."):
            found |= {name: value for name, value in vars(one).items() if name.startswith("test_")}
    return found
