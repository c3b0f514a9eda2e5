"""The exception classes of an op family for skills, derived from the classes that the family declares.

A class in the SDK has the same name, code and documentation as the class of the host. Its bases are the declared
classes, the general errors of ``sideband.skill`` and the natural builtins among those of the host's class.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from inspect import cleandoc
from typing import Any, get_type_hints

from attrs import frozen
from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError

from ..errors import SidebandError
from . import _errors
from ._sdk_types import Annotator, docstring
from ._spec import OpFamily

BUILTINS = "_builtins"
"""The name of the module ``builtins`` in generated modules."""

_GENERAL = (
    _errors.EffectInFlight,
    _errors.EffectUnknown,
    _errors.EgressRefused,
    _errors.LimitExceeded,
    _errors.OpCancelled,
    _errors.OpDenied,
    _errors.OpNotFound,
    _errors.OpParamsInvalid,
    _errors.OpResultInvalid,
    _errors.OpTimeout,
    _errors.OpUnavailable,
    _errors.SecretsClosed,
)
# The builtins that a skill may expect. Others have constructors of their own, or a meaning for the interpreter, and
# `RuntimeError`, which each `OpFailed` is, says nothing.
_NATURAL = frozenset(
    (
        ArithmeticError,
        ConnectionError,
        EOFError,
        FileExistsError,
        FileNotFoundError,
        IndexError,
        IsADirectoryError,
        KeyError,
        LookupError,
        NotADirectoryError,
        NotImplementedError,
        OSError,
        PermissionError,
        TimeoutError,
        TypeError,
        ValueError,
    )
)

_PLAIN = re.compile(r"(str|int|float|bool|None|Literal\[.*\])( \| (str|int|float|bool|None|Literal\[.*\]))*")


@frozen
class GeneratedError:
    """One exception class of an SDK module.

    Args:
        name: the name of the class.
        code: its code.
        bases: its bases as source text.
        doc: its docstring.
        details: the annotations of its details by name.
        shared: whether several families may declare it, so that it is defined in a module of its own.
    """

    name: str
    code: str
    bases: tuple[str, ...]
    doc: str
    details: Mapping[str, str]
    shared: bool

    def in_module(self) -> str:
        """Return the class as in a module."""
        lines = [self._first(), docstring(self.doc, "    "), "", f"    code = {self.code!r}"]
        return "\n".join([*lines, *([f"    details = {tuple(self.details)!r}"] if self.details else [])])

    def in_stub(self) -> str:
        """Return the class as in a stub."""
        details = [f"    {name}: {annotation}" for name, annotation in self.details.items()]
        return "\n".join([self._first(), docstring(self.doc, "    "), *details])

    def _first(self) -> str:
        return f"class {self.name}({', '.join(self.bases)}):"


def shared_errors(families: Iterable[OpFamily]) -> tuple[GeneratedError, ...]:
    """Return the shared errors of all these families.

    Raises:
        ValueError: if two of them have the same name or code; with the name of the one family, and what is wrong.
    """
    known: dict[str, tuple[type[SidebandError], str]] = {}
    for family in families:
        for error in family.errors:
            for key in (error.__name__, error.code) if getattr(error, "shared", False) else ():
                first, other = known.setdefault(key, (error, family.name))
                if first is not error:
                    raise ValueError(family.name, f"`{other}` has another shared error with the name or code `{key}`")
    return error_classes(dict.fromkeys(error for error, _ in known.values()))


def import_general(classes: Iterable[GeneratedError], *more: str) -> str:
    """Return the import of the names from ``sideband.skill`` that a module needs for these classes."""
    bases = {base for one in classes for base in one.bases}
    general = {base[1:] for base in bases if base.startswith("_") and not base.startswith(BUILTINS)}
    names = [*more, *sorted(general)]
    return f"from sideband.skill import {', '.join(f'{name} as _{name}' for name in names)}" if names else ""


def errors_by_code(classes: Iterable[GeneratedError]) -> str:
    """Return the definition of the dictionary by which a worker finds the classes."""
    return f"_ERRORS = {{{', '.join(f'{one.code!r}: {one.name}' for one in classes)}}}"


def error_classes(errors: Iterable[type[SidebandError]]) -> tuple[GeneratedError, ...]:
    """Return the exception classes for the errors of a family, bases first."""
    declared = sorted(errors, key=lambda error: len(error.__mro__))
    return tuple(_class(error, frozenset(declared)) for error in declared)


def _class(error: type[SidebandError], declared: frozenset[type]) -> GeneratedError:
    found = list(dict.fromkeys(_bases(error, declared)))
    # A base that another one has already would be an error if it came first.
    kept = [one for one in found if not any(other is not one and issubclass(other, one) for other in found)]
    written = [_written(one, declared) for one in kept]
    if not any(issubclass(one, SidebandError) for one in kept):
        written.insert(0, "_OpError")
    return GeneratedError(
        name=error.__name__,
        code=error.code,
        bases=tuple(written),
        # The arguments in the rest of it are those of the host's class.
        doc=cleandoc(error.__doc__ or f"The error `{error.code}`.").partition("\n\n")[0],
        details=_details(error),
        shared=getattr(error, "shared", False),
    )


def _bases(error: type, declared: frozenset[type]) -> Iterator[type]:
    for base in error.__bases__:
        if base in declared or base in _GENERAL or base in _NATURAL:
            yield base
        else:
            yield from _bases(base, declared)


def _written(base: type, declared: frozenset[type]) -> str:
    if base in declared:
        return base.__name__
    return f"_{base.__name__}" if base in _GENERAL else f"{BUILTINS}.{base.__name__}"


def _details(error: type[SidebandError]) -> Mapping[str, str]:
    names: tuple[str, ...] = getattr(error, "details", ())
    try:
        hints = get_type_hints(error) if names else {}
    except Exception:  # noqa: BLE001  an annotation may name anything, and is only needed for editors
        hints = {}
    return {name: _annotation(hints.get(name, Any)) for name in names}


def _annotation(hint: Any) -> str:
    try:
        written = Annotator().write(TypeAdapter(hint).json_schema())
    except (PydanticInvalidForJsonSchema, PydanticSchemaGenerationError):
        return "Any"
    # Anything but a number, a bool and `None` is sent as a text.
    return written if _PLAIN.fullmatch(written) else "Any"
