"""A parsed skill as data, with the files that it is valid for: one line of JSON, then the instructions as text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, TypeAdapter, with_config
from sideband.loading import Resume, SkillProblem, SkillSpec, ToolSpec
from sideband.ops import Capability
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from ._argument_check import ArgumentCheck
from ._folder_search import Candidate
from ._result_check import ResultCheck
from ._shape import Form
from ._skill_files import Identity, SkillFiles
from ._value_types import is_form

# What such a problem reports may end without a change of a file.
_PASSING = frozenset({"skill.files.changed", "skill.files.unreadable"})


def _checked_form(value: Any) -> Form:
    if not is_form(value):
        raise ValueError("not a form")
    form: Form = value
    return form


def _checked_capability(text: str) -> str:
    if str(Capability.parse(text)) != text:
        raise ValueError("not a capability in its normal form")
    return text


@with_config(ConfigDict(extra="forbid"))
class _Plain(TypedDict):
    """The parts of a ``SkillSpec`` that are plain data, without the instructions, which need no parsing as text."""

    name: str
    key: str
    description: str
    capabilities: tuple[Annotated[str, AfterValidator(_checked_capability)], ...]
    families: tuple[str, ...] | None
    timeout: float | None
    requirements: tuple[str, ...]
    requires_python: str
    memory: int | None
    alone: bool
    resume: Resume
    provides: dict[str, str]
    connections: tuple[str, ...]
    allowed_tools: tuple[str, ...]
    license: str | None
    compatibility: str | None
    metadata: dict[str, str]


@with_config(ConfigDict(extra="forbid"))
class _StoredTool(TypedDict):
    """A tool, with the form of its arguments instead of the functions that are made from it."""

    name: str
    module: str
    description: str
    parameters: dict[str, Any]
    returns: dict[str, Any] | None
    timeout: float | None
    signature: str
    from_host: dict[str, str]
    form: Annotated[Any, AfterValidator(_checked_form)]


@with_config(ConfigDict(extra="forbid"))
class _StoredSkill(TypedDict):
    """A parsed skill.

    Attributes:
        manifest: the name of its manifest.
        read: the files whose content was parsed.
        listed: how many of the problems were found by listing the files.
        text: the number of characters that parsing added to the meter, except for names of files.
    """

    manifest: str
    read: dict[str, Identity]
    listed: int
    text: int
    problems: tuple[tuple[str, str, str, str, bool], ...]
    tools: tuple[_StoredTool, ...]
    plain: _Plain


_STORED: TypeAdapter[_StoredSkill] = TypeAdapter(_StoredSkill)
_NAMES = tuple(_Plain.__annotations__)


def read_files(candidate: Candidate, files: SkillFiles) -> dict[str, Identity]:
    """Return the files of a skill whose content is parsed."""
    return {
        name: identity
        for name, identity in files.identities.items()
        if name.endswith(".py") or name in (candidate.manifest, "skill.yaml")
    }


def is_storable(candidate: Candidate, spec: SkillSpec) -> bool:
    """Return whether the files determine the skill. That of a package also depends on its distribution."""
    return not candidate.package and not any(problem.code in _PASSING for problem in spec.problems)


def encoded(candidate: Candidate, files: SkillFiles, spec: SkillSpec, *, listed: int, text: int) -> bytes:
    """Return a skill as data.

    Raises:
        ValueError: if it contains what the data cannot represent, such as half of a surrogate pair.
    """
    plain = {name: getattr(spec, name) for name in _NAMES}
    stored = {
        "manifest": candidate.manifest,
        "read": read_files(candidate, files),
        "listed": listed,
        "text": text,
        "problems": [(one.source, one.code, one.reason, one.hint, one.fatal) for one in spec.problems],
        "tools": [_stored_tool(tool) for tool in spec.tools],
        "plain": {**plain, "metadata": dict(spec.metadata)},
    }
    line = json.dumps(stored, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return f"{line}\n{spec.instructions}".encode()


def decoded(
    content: bytes, candidate: Candidate, files: SkillFiles, found: Sequence[SkillProblem]
) -> tuple[SkillSpec, int] | None:
    """Return a skill and its number of characters; ``None`` if the content is invalid or for other files.

    Args:
        content: the data.
        candidate: the skill's folder and manifest.
        files: its files.
        found: the problems that were found by listing them.
    """
    try:
        line, _, instructions = content.partition(b"\n")
        stored = _STORED.validate_json(line)
        text = instructions.decode()
    except (ValueError, RecursionError):
        return None
    problems = tuple(SkillProblem(*problem) for problem in stored["problems"])
    made_from = (stored["manifest"], stored["read"], problems[: stored["listed"]])
    if made_from != (candidate.manifest, read_files(candidate, files), tuple(found)):
        return None
    plain = stored["plain"]
    spec = SkillSpec(
        source=candidate.folder,
        origin=candidate.origin,
        files=files.paths,
        tools=tuple(_tool(plain["key"], tool) for tool in stored["tools"]),
        instructions=text,
        problems=problems,
        **plain,
    )
    return spec, stored["text"]


def _stored_tool(tool: ToolSpec) -> Mapping[str, Any]:
    names = ("name", "module", "description", "parameters", "returns", "timeout", "signature", "from_host")
    form = tool.validate.form if isinstance(tool.validate, ArgumentCheck) else None
    return {**{name: getattr(tool, name) for name in names}, "form": form}


def _tool(skill: str, stored: _StoredTool) -> ToolSpec:
    returns = stored["returns"]
    return ToolSpec(
        skill=skill,
        name=stored["name"],
        module=stored["module"],
        description=stored["description"],
        parameters=stored["parameters"],
        validate=ArgumentCheck(stored["form"], frozenset(stored["from_host"])),
        returns=returns,
        validate_result=None if returns is None else ResultCheck(returns),
        timeout=stored["timeout"],
        signature=stored["signature"],
        from_host=stored["from_host"],
    )
