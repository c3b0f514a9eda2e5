"""The scope of `shell` capabilities, and the scopes that a request needs.

Arguments are compared as one string, quoted like in a POSIX shell and joined by spaces. So one argument cannot be
mistaken for two, or two for one. A pattern must end at the end of an argument.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import attrs
from sideband.ops import CapabilityInvalid, Scope

from ._known_programs import runs_code, runs_others

NO_OPTIONS = "none"
_NOTHING = "none/"  # not a valid name for a place or a variable


_REMARKS = (
    ("runs", "any", "can run any other program, in the same isolation"),
    ("sockets", "yes", "can use every service that listens at a socket in their places"),
    ("mode", "execute", "can execute files that they create in their places"),
)


@attrs.frozen
class ShellScope(Scope, family="shell"):
    """The fields of a `shell` capability, such as `shell:runs=any,binary=git,sub=status,place=/srv/repo`.

    Attributes:
        binary: the name that is looked up, or the absolute path without symbolic links.
        sub: the first argument.
        args: all arguments, quoted like in a shell and joined by spaces; a pattern ends with a whole argument and a
            space (`args=log%20*`).
        options: the arguments that begin with `-`, quoted and joined in the same way, or `none`. A capability with
            `sub` or a pattern of `args` but without this field allows only the options in those fields.
        code: `yes` for shells, interpreters and programs that start others. The default is `no`, unless the capability
            names its binaries in full.
        runs: `any` for a program that may run other programs, in the same isolation; the default is `none`.
        network: `yes` or `no`; the default is `no`.
        sockets: `yes` if a program with places may use unix sockets, and so the services that listen in these places;
            the default is `no`.
        place: the absolute path without symbolic links, or a path relative to `SIDEBAND_HOME/files`; by default
            no place.
        mode: `read`, `write`, or `execute` to write and to execute files; the default is `read`.
        env: the name of a variable that the caller sets; by default no variable.
    """

    valid_values: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "code": ("yes", "no"),
        "runs": ("any", "none"),
        "network": ("yes", "no"),
        "sockets": ("yes", "no"),
        "mode": ("read", "write", "execute"),
    }

    binary: str | None = None
    sub: str | None = None
    args: str | None = None
    options: str | None = None
    code: str | None = None
    runs: str | None = None
    network: str | None = None
    sockets: str | None = None
    place: str | None = None
    mode: str | None = None
    env: str | None = None

    # Each place and each variable has a scope of its own without the others. Sockets are not requested, and other
    # programs only by those that are known to run them: a program gets both if the grant covers all its scopes so.
    known_later = ("place", "mode", "env", "runs", "sockets")

    @classmethod
    def explain(cls, fields: Mapping[str, tuple[str, ...]]) -> str:
        """Return what the user should know about a capability with these fields."""
        remarks = [remark for field, value, remark in _REMARKS if _includes(fields.get(field, ()), value)]
        return f"these programs {', and '.join(remarks)}" if remarks else ""

    @classmethod
    def complete(cls, fields: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
        """Add the default fields: no other programs, places, network, sockets or variables, and only listed options.

        Raises:
            CapabilityInvalid: if a pattern of `args` ends within an argument.
        """
        added: dict[str, tuple[str, ...]] = {
            "runs": ("none",),
            "network": ("no",),
            "sockets": ("no",),
            "place": (_NOTHING,),
            "mode": ("read",),
            "env": (_NOTHING,),
        }
        binaries = fields.get("binary", ("*",))
        if any(name.endswith("*") for name in binaries):
            added["code"] = ("no",)
        vectors = [_fixed_words(pattern) for pattern in fields.get("args", ())]
        vectors += [[pattern] for pattern in fields.get("sub", ()) if not pattern.endswith("*")]
        if "sub" in fields or any(pattern.endswith("*") for pattern in fields.get("args", ())):
            added["options"] = tuple(dict.fromkeys(map(_options, vectors))) or (NO_OPTIONS,)
        return added


def scopes_of(
    binary: str, args: Sequence[str], *, network: bool, places: Mapping[str, str], variables: Sequence[str]
) -> Iterator[ShellScope]:
    """Yield the scopes that the grant must cover: one for the program, each place and each variable.

    Args:
        binary: the program, in the form that capabilities use.
        args: the arguments.
        network: whether the program needs the network.
        places: the path and mode of each place.
        variables: the names of the variables.
    """
    program = ShellScope(
        binary=binary,
        sub=(args[0] or None) if args else None,  # capabilities cannot contain an empty value
        args=shlex.join(args) if args else None,
        options=_options(args),
        code="yes" if runs_code(binary) else "no",
        runs="any" if runs_others(binary) else None,
        network="yes" if network else "no",
    )
    yield program
    for place, mode in places.items():
        yield attrs.evolve(program, place=place, mode=mode)
    for name in variables:
        yield attrs.evolve(program, env=name)


def _includes(patterns: Sequence[str], value: str) -> bool:
    """Return whether a value of a capability's field allows this one; a trailing ``*`` matches any ending."""
    return any(each == value or (each.endswith("*") and value.startswith(each[:-1])) for each in patterns)


def _options(args: Sequence[str]) -> str:
    return shlex.join(each for each in args if each.startswith("-")) or NO_OPTIONS


def _fixed_words(pattern: str) -> list[str]:
    """Return the complete arguments at the beginning of a pattern."""
    text = pattern.removesuffix("*")
    try:
        words = shlex.split(text)
    except ValueError:
        words = None
    if words is None or (pattern.endswith("*") and text and not text.endswith(" ")):
        problem = f"the pattern `{pattern}` of `args` ends within an argument; end it with `%20*`"
        raise CapabilityInvalid(f"shell:args={pattern}", problem)
    return words
