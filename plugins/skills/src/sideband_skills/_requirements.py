"""What a skill depends on: from the metadata in its Python files, or from the package that it is installed as."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any

from attrs import frozen
from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from sideband.suggestions import did_you_mean

from ._problems import Problems, shown
from ._script_blocks import ScriptBlock, find_blocks
from ._tool_discovery import Module

_KEYS = ("dependencies", "requires-python", "tool")
# The parser takes time by the cube of the length for keys of thousands of parts: a second here, a minute at four times.
_MAXIMUM_BLOCK = 16 << 10
_MAXIMUM_REQUIREMENTS = 200
# Whoever compares versions makes numbers of their digits, and Python makes none of thousands.
_LONGEST_VERSIONS = 1_000
_SKILL_GROUP = "sideband.v1.skill"
_OWN_GROUPS = "sideband.v"
_NOT_A_NAME = re.compile(r"-|\.{0,2}/|[a-z+]+:|.*\.(whl|zip|tar\.gz)$", re.IGNORECASE)
_DIRECT = "name a package and its versions, as in `numpy>=2`; a folder of wheels (`--wheels DIR`) can supply it"


@frozen
class Requirements:
    """What a skill depends on.

    Args:
        packages: PEP 508 texts, each once.
        python: a PEP 440 specifier set; empty for any version.
    """

    packages: tuple[str, ...] = ()
    python: str = ""


def read_requirements(modules: Iterable[Module], package: str, problems: Problems) -> Requirements:
    """What the skill depends on. Whatever of it can't be understood keeps the skill from loading.

    Args:
        modules: its Python files. The ``script`` blocks of all of them count, since one worker runs them.
        package: the distribution that it is installed with, whose requirements count if there are no such blocks and
            the distribution brings nothing but skills; empty if it is just a folder.
        problems: takes what is odd.
    """
    declared = [found for module in modules if (found := _script(module, problems)) is not None]
    if not declared and package:
        declared = [_of_distribution(package, problems)]
    texts = tuple(dict.fromkeys(text for one in declared for text in one.packages))
    if len(texts) > _MAXIMUM_REQUIREMENTS:
        problems.fail(
            "requirement.many", f"it names {len(texts):,} requirements, more than {_MAXIMUM_REQUIREMENTS}", "name fewer"
        )
    versions = SpecifierSet(",".join(one.python for one in declared if one.python))
    return Requirements(texts, str(versions))


def _script(module: Module, problems: Problems) -> Requirements | None:
    blocks = [block for block in find_blocks(module.text) if block.kind == "script"]
    if len(blocks) > 1:
        problems.fail(
            "script.repeated",
            f"it has `# /// script` in line {blocks[0].line} and again in line {blocks[1].line}",
            "put all into one block",
            file=module.path,
        )
    if not blocks:
        return None
    values = _parse(blocks[0], module, problems)
    _check_keys(values, module, problems)
    listed = values.get("dependencies", [])
    if not (isinstance(listed, list) and all(isinstance(text, str) for text in listed)):
        problems.fail(
            "script.dependencies",
            f"`dependencies` is {shown(listed)}, and not a list of texts",
            'write `dependencies = ["numpy>=2"]`',
            file=module.path,
        )
        listed = []
    python = values.get("requires-python", "")
    return Requirements(
        tuple(_checked(listed, "dependencies", module.path, problems)), _checked_python(python, module.path, problems)
    )


def _parse(block: ScriptBlock, module: Module, problems: Problems) -> Mapping[str, Any]:
    reason = f"it has more than {_MAXIMUM_BLOCK >> 10} KiB"
    if len(block.content) <= _MAXIMUM_BLOCK:
        try:
            return tomllib.loads(block.content)
        except tomllib.TOMLDecodeError as error:
            reason = str(error)
        except RecursionError:
            reason = "it is nested too deeply"
    problems.fail(
        "script.toml",
        f"the `script` block in line {block.line} can't be read as TOML: {reason}",
        'write `# dependencies = ["numpy>=2"]` between `# /// script` and `# ///`',
        file=module.path,
    )
    return {}


def _check_keys(values: Mapping[str, Any], module: Module, problems: Problems) -> None:
    for key in values:
        if key not in _KEYS:
            problems.warn(
                "script.key",
                f"the key {shown(key)} means nothing in a `script` block{did_you_mean(key, _KEYS)}",
                file=module.path,
            )
    tools = values.get("tool")
    if isinstance(tools, Mapping) and "uv" in tools:
        problems.warn(
            "script.tool",
            "`[tool.uv]` is not read: where packages come from is for the user to say, not for a skill",
            "leave it out, or say in the text what the user has to set",
            file=module.path,
        )


def _of_distribution(name: str, problems: Problems) -> Requirements:
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return Requirements()
    if _serves_the_host(found):
        return Requirements()
    file = f"package {name}"
    packages = _checked(found.requires or (), "Requires-Dist", file, problems, installed=True)
    python = (found.metadata.get_all("Requires-Python") or [""])[0]
    return Requirements(tuple(packages), _checked_python(python, file, problems))


def _serves_the_host(found: Distribution) -> bool:
    """Whether it brings plugins too: then it names what those need, and a worker has no use for that."""
    groups = {entry_point.group for entry_point in found.entry_points}
    return any(group.startswith(_OWN_GROUPS) and group != _SKILL_GROUP for group in groups)


def _checked(
    texts: Iterable[str], key: str, file: str, problems: Problems, *, installed: bool = False
) -> Iterator[str]:
    for text in texts:
        try:
            requirement = Requirement(text)
            applies = not installed or requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        except (ValueError, RecursionError) as error:
            if _NOT_A_NAME.match(text.strip()):
                _refuse(text, key, file, problems)
            else:
                reason = str(error).partition("\n")[0] or "it is nested too deeply"
                problems.fail(
                    "requirement",
                    f"{shown(text)} in `{key}` is no requirement: {reason}",
                    'write "numpy>=2"',
                    file=file,
                )
            continue
        if requirement.url is not None:
            _refuse(text, key, file, problems)
        elif applies and not _is_own(requirement.name):
            requirement.marker = None if installed else requirement.marker
            yield str(requirement)


def _refuse(text: str, key: str, file: str, problems: Problems) -> None:
    problems.fail(
        "requirement.direct", f"{shown(text)} in `{key}` names a place and not a package, which is refused", _DIRECT,
        file=file,
    )  # fmt: skip


def _is_own(name: str) -> bool:
    """Whether it is a part of sideband: a worker has what skills need of it, and nothing else of it works there."""
    plain = re.sub(r"[-_.]+", "-", name).lower()
    return plain == "sideband" or plain.startswith("sideband-")


def _checked_python(value: object, file: str, problems: Problems) -> str:
    try:
        if isinstance(value, str) and len(value) <= _LONGEST_VERSIONS:
            return str(SpecifierSet(value))
    except InvalidSpecifier:
        pass
    problems.fail(
        "requires_python", f"`requires-python` is {shown(value)}, and no set of versions", 'write ">=3.11"', file=file
    )
    return ""
