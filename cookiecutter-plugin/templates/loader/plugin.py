"""The loader: it reads skills that are described by a `skill.toml`, and runs nothing of them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sideband.loading import LoadedSkills, SkillProblem, SkillSources, SkillSpec, ToolSpec
from sideband.ops import OpFamily

__all__ = ["sideband_loaders"]

NAME = "{{ cookiecutter.__entry }}"
FILE = "skill.toml"
SKILL_NAME = r"[a-z][a-z0-9]*([_-][a-z0-9]+)*"
TOOL_NAME = r"[a-z][a-z0-9]*(_[a-z0-9]+)*"
LARGEST_FILE = 1 << 20


class ToolTable(BaseModel):
    """The table of a tool: the function has the name of the table."""

    model_config = ConfigDict(extra="forbid")

    module: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\.py$")
    description: str = Field(min_length=1, max_length=1_000)
    arguments: list[str] = Field(default=[], max_length=20)


class SkillTable(BaseModel):
    """The content of a file."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=f"^{SKILL_NAME}$", max_length=40)
    description: str = Field(min_length=1, max_length=1_000)
    capabilities: list[str] = []
    tools: dict[str, ToolTable] = {}


class TomlLoader:
    """Finds the files in the folders of skills and directly below them."""

    name = NAME

    def load(self, sources: SkillSources) -> LoadedSkills:
        """Return the skills, and what is wrong with others."""
        skills: dict[str, SkillSpec] = {}
        problems = []
        for file in files_in(sources.folders):
            found = read(file)
            if isinstance(found, SkillProblem):
                problems.append(found)
            elif skills.setdefault(found.key, found) is not found:
                problems.append(SkillProblem(str(file), "toml.name", f"another skill is named {found.name!r}"))
        return LoadedSkills(tuple(skills.values()), tuple(problems))

    async def validate(self, folder: Path, *, families: Iterable[OpFamily] = ()) -> tuple[SkillProblem, ...]:  # noqa: ARG002
        """Return what is wrong with the skill in a folder."""
        if not (folder / FILE).exists():
            return (SkillProblem(str(folder), "skill.manifest.missing", f"there is no {FILE}", fatal=True),)
        found = read(folder / FILE)
        return (found,) if isinstance(found, SkillProblem) else ()


def files_in(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the files of skills in a fixed order."""
    for folder in folders:
        yield from sorted([*folder.glob(FILE), *folder.glob(f"*/{FILE}")])


def read(file: Path) -> SkillSpec | SkillProblem:
    """Return the skill of a file, or what is wrong with it."""
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise ValueError(f"it has more than {LARGEST_FILE:,} bytes")
        table = SkillTable.model_validate(tomllib.loads(file.read_text("utf-8")))
        modules = {path.name for path in file.parent.glob("*.py")}
        missing = sorted({tool.module for tool in table.tools.values()} - modules)
        if missing:
            raise ValueError(f"there is no {missing[0]}")
        return spec(file, table, modules)
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except (OSError, ValueError) as error:
        reason = str(error)
    return SkillProblem(str(file), "toml.invalid", reason, "correct the file", fatal=True)


def spec(file: Path, table: SkillTable, modules: set[str]) -> SkillSpec:
    """Return the skill that a table describes."""
    key = table.name.replace("-", "_")
    return SkillSpec(
        name=table.name,
        key=key,
        description=table.description,
        source=file.parent,
        files=tuple(sorted(modules)),
        tools=tuple(tool_spec(key, name, tool) for name, tool in sorted(table.tools.items())),
        capabilities=tuple(table.capabilities),
    )


def tool_spec(skill: str, name: str, table: ToolTable) -> ToolSpec:
    """Return the tool that a table describes. All of its arguments are texts."""
    if not re.fullmatch(TOOL_NAME, name):
        raise ValueError(f"{name!r} is not a name of a tool, write it as lower-case words joined with _")
    names = table.arguments

    def validate(arguments: Mapping[str, Any]) -> dict[str, Any]:
        if set(arguments) != set(names) or not all(isinstance(one, str) for one in arguments.values()):
            raise ValueError(f"expected texts for the arguments: {', '.join(names) or 'none'}")
        return dict(arguments)

    schema = {
        "type": "object",
        "properties": {one: {"type": "string"} for one in names},
        "required": names,
        "additionalProperties": False,
    }
    return ToolSpec(skill, name, table.module, table.description, schema, validate)


def sideband_loaders() -> list[TomlLoader]:
    """Register the loader."""
    return [TomlLoader()]
