"""The dependencies of a skill, from the inline metadata of its Python files or from its installed package."""

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
from ._script_blocks import ScriptBlock

_KEYS = ("dependencies", "requires-python", "tool")
# tomllib takes cubic time for dotted keys with thousands of parts: a second and 250 MB at twice this size.
_MAXIMUM_BLOCK = 8 << 10
# of all blocks together, each of which takes that long
_MAXIMUM_SIZE = 16 << 10
_MAXIMUM_REQUIREMENTS = 200
# Versions are compared as integers, and Python refuses to parse integers with thousands of digits.
_MAXIMUM_SPECIFIER = 1_000
_SKILL_GROUP = "sideband.v1.skill"
_OWN_GROUPS = "sideband.v"
_NOT_A_NAME = re.compile(r"-|\.{0,2}/|[a-z+]+:|.*\.(whl|zip|tar\.gz)$", re.IGNORECASE)
_DIRECT_HINT = "write a package name and versions, as in `numpy>=2`; `--wheels DIR` can supply it from a folder"


@frozen
class Requirements:
    """The dependencies of a skill.

    Args:
        packages: unique PEP 508 requirements.
        python: a PEP 440 specifier set; empty for any version.
    """

    packages: tuple[str, ...] = ()
    python: str = ""


def read_requirements(blocks: Mapping[str, list[ScriptBlock]], package: str, problems: Problems) -> Requirements:
    """Read the dependencies of a skill. An invalid dependency prevents the skill from loading.

    Args:
        blocks: the blocks of its Python files. The ``script`` blocks of all are merged, since one worker runs them.
        package: the distribution that installed the skill, or empty for a folder. Its requirements are used if there
            are no ``script`` blocks and it contains only skills.
        problems: receives the problems.
    """
    sizes = (len(block.content) for found in blocks.values() for block in found if block.kind == "script")
    # a larger one is rejected without parsing
    if sum(size for size in sizes if size <= _MAXIMUM_BLOCK) > _MAXIMUM_SIZE:
        problems.fail(
            "script.large",
            f"the `script` blocks exceed the limit of {_MAXIMUM_SIZE >> 10} KiB",
            "declare the dependencies in one file",
        )
        return Requirements()
    declared = [script for path, found in blocks.items() if (script := _script(path, found, problems)) is not None]
    if not declared and package:
        declared = [_of_distribution(package, problems)]
    texts = tuple(dict.fromkeys(text for one in declared for text in one.packages))
    if len(texts) > _MAXIMUM_REQUIREMENTS:
        problems.fail(
            "requirement.many",
            f"the skill has {len(texts):,} requirements, more than the limit of {_MAXIMUM_REQUIREMENTS}",
            "remove some",
        )
    versions = SpecifierSet(",".join(one.python for one in declared if one.python))
    return Requirements(texts, str(versions))


def _script(path: str, found: Iterable[ScriptBlock], problems: Problems) -> Requirements | None:
    blocks = [block for block in found if block.kind == "script"]
    if len(blocks) > 1:
        problems.fail(
            "script.repeated",
            f"duplicate `# /// script` blocks in line {blocks[0].line} and line {blocks[1].line}",
            "merge them into one block",
            file=path,
        )
    if not blocks:
        return None
    values = _parse(blocks[0], path, problems)
    _check_keys(values, path, problems)
    listed = values.get("dependencies", [])
    if not (isinstance(listed, list) and all(isinstance(text, str) for text in listed)):
        problems.fail(
            "script.dependencies",
            f"`dependencies` must be a list of strings, got {shown(listed)}",
            'write `dependencies = ["numpy>=2"]`',
            file=path,
        )
        listed = []
    python = values.get("requires-python", "")
    return Requirements(
        tuple(checked_requirements(listed, "dependencies", path, problems)), _checked_python(python, path, problems)
    )


def _parse(block: ScriptBlock, path: str, problems: Problems) -> Mapping[str, Any]:
    reason = f"it exceeds the limit of {_MAXIMUM_BLOCK >> 10} KiB"
    if len(block.content) <= _MAXIMUM_BLOCK:
        try:
            return tomllib.loads(block.content)
        except tomllib.TOMLDecodeError as error:
            reason = str(error)
        except RecursionError:
            reason = "it is nested too deeply"
    problems.fail(
        "script.toml",
        f"the `script` block in line {block.line} is not valid TOML: {reason}",
        'write `# dependencies = ["numpy>=2"]` between `# /// script` and `# ///`',
        file=path,
    )
    return {}


def _check_keys(values: Mapping[str, Any], path: str, problems: Problems) -> None:
    for key in values:
        if key not in _KEYS:
            problems.warn(
                "script.key",
                f"unknown key {shown(key)} in a `script` block{did_you_mean(key, _KEYS)}",
                file=path,
            )
    tools = values.get("tool")
    if isinstance(tools, Mapping) and "uv" in tools:
        problems.warn(
            "script.tool",
            "`[tool.uv]` is ignored: the user, not the skill, chooses the sources of packages",
            "remove it, or document the settings that the user needs",
            file=path,
        )


def _of_distribution(name: str, problems: Problems) -> Requirements:
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return Requirements()
    if _serves_the_host(found):
        return Requirements()
    file = f"package {name}"
    packages = checked_requirements(found.requires or (), "Requires-Dist", file, problems, installed=True)
    python = (found.metadata.get_all("Requires-Python") or [""])[0]
    return Requirements(tuple(packages), _checked_python(python, file, problems))


def _serves_the_host(found: Distribution) -> bool:
    """Return whether the distribution contains plugins: its requirements are then theirs, and useless to a worker."""
    groups = {entry_point.group for entry_point in found.entry_points}
    return any(group.startswith(_OWN_GROUPS) and group != _SKILL_GROUP for group in groups)


def checked_requirements(
    texts: Iterable[str], key: str, file: str, problems: Problems, *, installed: bool = False
) -> Iterator[str]:
    """Yield the valid requirements, normalized, without those of sideband. The others are reported.

    Args:
        texts: the requirements as written.
        key, file: where they are written.
        problems: receives the problems.
        installed: whether they are those of an installed package, whose markers are evaluated.
    """
    for text in texts:
        problems.meter.check()
        try:
            requirement = Requirement(text)
            applies = not installed or requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        except (ValueError, RecursionError) as error:
            if _NOT_A_NAME.match(text.strip()):
                _refuse(text, key, file, problems)
            else:
                reason = str(error).partition("\n")[0] or "nested too deeply"
                problems.fail(
                    "requirement",
                    f"invalid requirement {shown(text)} in `{key}`: {reason}",
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
        "requirement.direct",
        f"{shown(text)} in `{key}` is an address or path instead of a package name",
        _DIRECT_HINT,
        file=file,
    )


def _is_own(name: str) -> bool:
    """Return whether it is a package of sideband. A worker already contains the parts that skills can use."""
    plain = re.sub(r"[-_.]+", "-", name).lower()
    return plain == "sideband" or plain.startswith("sideband-")


def _checked_python(value: object, file: str, problems: Problems) -> str:
    try:
        if isinstance(value, str) and len(value) <= _MAXIMUM_SPECIFIER:
            return str(SpecifierSet(value))
    except InvalidSpecifier:
        pass
    problems.fail(
        "requires_python",
        f"`requires-python` must be a version specifier, got {shown(value)}",
        'write ">=3.11"',
        file=file,
    )
    return ""
