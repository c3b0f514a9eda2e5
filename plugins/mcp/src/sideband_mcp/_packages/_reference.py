"""The package that a command names: `npx PACKAGE`, `uvx PACKAGE`, `uv tool run PACKAGE` or `pipx run PACKAGE`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Literal

from attrs import frozen
from packaging.requirements import InvalidRequirement, Requirement

_NPM_NAME = re.compile(r"(?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*\Z")
_NPM_VERSION = re.compile(r"[0-9A-Za-z^~][0-9A-Za-z.+-]*\Z")
_PROGRAM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\Z")
_LONGEST = 214
_RUNNERS: dict[tuple[str, ...], Literal["npm", "pypi"]] = {
    ("npx",): "npm",
    ("uvx",): "pypi",
    ("uv", "tool", "run"): "pypi",
    ("pipx", "run"): "pypi",
}
# Options that are understood. Others could name another registry, or run code.
_FLAGS = {"npm": {"-y", "--yes"}, "pypi": set[str]()}
_OF_PACKAGE = {"npm": {"-p", "--package"}, "pypi": {"--from", "--spec"}}


@frozen
class PackageReference:
    """A package and its program, as a command names them.

    Attributes:
        registry: `npm` or `pypi`.
        name: the name of the package, with its extras.
        version: the versions that may be chosen, as its registry writes them; empty for any.
        program: the name of the program; empty for the only one, or the one with the name of the package.
        arguments: the arguments of the program.
    """

    registry: Literal["npm", "pypi"]
    name: str
    version: str = ""
    program: str = ""
    arguments: tuple[str, ...] = ()

    @property
    def wanted(self) -> str:
        """The package and its versions, for a person."""
        return (
            f"{self.name}@{self.version}" if self.registry == "npm" and self.version else f"{self.name}{self.version}"
        )


def reference_of(command: Sequence[str]) -> PackageReference | None:
    """Return the package that a command names, or ``None`` for another program.

    Raises:
        ValueError: if it names something else than a package of the registry, such as a folder or a repository.

    Example:
        >>> reference_of(["npx", "-y", "@acme/server@1.2", "--fast"])
        PackageReference(registry='npm', name='@acme/server', version='1.2', program='', arguments=('--fast',))
        >>> reference_of(["uvx", "acme-server==1.2"]).wanted
        'acme-server==1.2'
    """
    words = [PurePath(command[0]).name, *command[1:]]
    for runner, registry in _RUNNERS.items():
        if tuple(words[: len(runner)]) == runner:
            return _parsed(registry, iter(words[len(runner) :]))
    return None


def _parsed(registry: Literal["npm", "pypi"], words: Iterator[str]) -> PackageReference:
    package = ""
    for word in words:
        option, equals, value = word.partition("=")
        if option in _OF_PACKAGE[registry] and word.startswith("-"):
            package = value if equals else next(words, "")
        elif word == "--" or word in _FLAGS[registry]:
            continue
        elif word.startswith("-"):
            raise ValueError(f"the option `{option}` before the name of the package is not supported")
        else:
            break
    else:
        raise ValueError("the name of a package is missing")
    named = package or word
    name, version = _npm(named) if registry == "npm" else _pypi(named)
    program = word if package else ""
    if program and not _PROGRAM.match(program):
        raise ValueError(f"`{program}` is not the name of a program")
    return PackageReference(registry, name, version, program, tuple(words))


def _npm(text: str) -> tuple[str, str]:
    name, _, version = text[1:].partition("@")
    name = text[:1] + name
    if len(name) > _LONGEST or not _NPM_NAME.match(name):
        raise ValueError(f"`{text}` is not the name of a package of npm, such as `@scope/name` or `name@1.2`")
    if version and not _NPM_VERSION.match(version):
        raise ValueError(f"`{version}` is not a version of a package of npm, such as `1.2.3` or `^1.2`")
    return name, version


def _pypi(text: str) -> tuple[str, str]:
    # uvx writes the version after an `@`.
    name, at, version = text.partition("@")
    written = text if not at else name if version.strip() == "latest" else f"{name}=={version}"
    try:
        found = Requirement(written)
    except InvalidRequirement:
        raise ValueError(f"`{text}` is not the name of a package of PyPI, such as `name` or `name==1.2`") from None
    if found.url is not None or found.marker is not None:
        raise ValueError(f"`{text}` has a URL or a marker, which is not supported")
    extras = f"[{','.join(sorted(found.extras))}]" if found.extras else ""
    return f"{found.name}{extras}", str(found.specifier)
