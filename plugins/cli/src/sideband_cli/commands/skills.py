"""``sideband skills list|show|validate|install|test``: inspect and test skills, and install what they need."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sideband import UsageError
from sideband.active_skills import mapped_tools
from sideband.command_line import add_host_options, joined, make_host, notice, print_data, run_async
from sideband.commands import Command
from sideband.exit_codes import ExitCode
from sideband.suggestions import did_you_mean

from .._skills._dirs import add_skill_dirs, skill_hint
from .._skills._packages import describe_packages, find_environment, install, packages_data
from .._skills._tests import configure_tests, run_tests
from .._skills._validation import validate_folder
from .._terminal._tables import format_table

if TYPE_CHECKING:
    from sideband import Host
    from sideband.environments import Environment
    from sideband.loading import LoadedSkills, SkillProblem, SkillSpec

__all__ = ["sideband_commands"]

_RESUME = {
    "ask": ["an interrupted call runs again only after a question"],
    "never": ["an interrupted call is never run again"],
}


def sideband_commands() -> Command:
    """Register the command."""
    return Command("skills", "list, show, validate and test skills, and install their dependencies", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list all skills and their problems, including skills that fail to load")
    show = actions.add_parser("show", help="show a skill or a tool, with its arguments")
    show.add_argument("name", metavar="SKILL", help="a skill, or a tool as SKILL.TOOL")
    validate = actions.add_parser("validate", help="check a skill folder; exit code 1 if it has problems")
    validate.add_argument("folder", type=Path, metavar="DIR", help="the skill folder")
    installing = actions.add_parser("install", help="install the packages that skills depend on")
    installing.add_argument("names", nargs="*", default=[], metavar="SKILL", help="the skills")
    installing.add_argument("--all", action="store_true", help="install the dependencies of all skills")
    installing.add_argument("--wheels", type=Path, metavar="DIR", help="use only wheels from this folder")
    installing.add_argument("--offline", action="store_true", help="download nothing; use only uv's cache")
    installing.add_argument(
        "--build",
        action="store_true",
        help="build packages that have no wheel; this runs their code with your privileges",
    )
    testing = actions.add_parser("test", help="run the tests of a skill with the testing kit; exit code 1 if one fails")
    configure_tests(testing)
    for action in (listing, show, installing, testing):
        add_skill_dirs(action)
    for action in (listing, show, validate, installing, testing):
        add_host_options(action)


def _run(arguments: Namespace) -> int:
    actions: dict[str, Callable[[Namespace], int]] = {
        "list": _list,
        "show": _show,
        "validate": _validate,
        "install": install,
        "test": run_tests,
    }
    return actions[arguments.action](arguments)


def _list(arguments: Namespace) -> ExitCode:
    loaded, levels = _load(arguments)
    rows = [
        [skill.name, tool.name if tool else "-", levels[skill.key], (tool or skill).description, skill.origin]
        for skill in loaded.skills
        for tool in skill.tools or (None,)
    ]
    text = format_table(["skill", "tool", "level", "description", "origin"], rows) if rows else "no skills"
    problems = list(dict.fromkeys([*loaded.problems, *(one for skill in loaded.skills for one in skill.problems)]))
    if problems:
        text += "\n\nproblems:\n" + joined(map(_describe, problems))
    data = {
        "skills": [_data(skill, levels[skill.key]) for skill in loaded.skills],
        "problems": [_problem_data(problem) for problem in problems],
    }
    print_data(arguments, data, text)
    return ExitCode.SUCCESS


def _load(arguments: Namespace) -> tuple[LoadedSkills, dict[str, str]]:
    """Return the skills, and their levels by key."""

    async def main() -> tuple[LoadedSkills, dict[str, str]]:
        async with make_host(arguments, skill_dirs=arguments.skill_dir) as host:
            loaded = await host.skills()
            return loaded, {skill.key: await _level(host, skill) for skill in loaded.skills}

    return run_async(main)


async def _level(host: Host, skill: SkillSpec) -> str:
    """Return the highest level of the effects that the capabilities of a skill allow."""
    return (await host.tools.level(skill)).name.lower()


def _find(arguments: Namespace) -> tuple[SkillSpec, str, Environment | None]:
    name, _, tool_name = arguments.name.partition(".")

    async def main() -> tuple[SkillSpec, str, Environment | None]:
        async with make_host(arguments, skill_dirs=arguments.skill_dir) as host:
            loaded = await host.skills()
            skill = next((skill for skill in loaded.skills if name in (skill.name, skill.key)), None)
            if skill is None or (tool_name and skill.tool(tool_name) is None):
                hint = skill_hint("`sideband skills list` shows all", arguments.skill_dir, unknown=True)
                known = [each for one in loaded.skills for each in _names(one)]
                problem = f"unknown skill or tool `{arguments.name}`{did_you_mean(arguments.name, known)}"
                raise UsageError(problem, hint=hint)
            return skill, await _level(host, skill), find_environment(host, skill)

    return run_async(main)


def _show(arguments: Namespace) -> ExitCode:
    skill, level, environment = _find(arguments)
    tool_name = arguments.name.partition(".")[2]
    data = {**_data(skill, level), **packages_data(skill, environment)}
    if tool_name:
        data["tools"] = [tool for tool in data["tools"] if tool["name"] == tool_name]
    lines = [
        f"{skill.name}: {skill.description}",
        f"from {skill.source} ({skill.origin})",
        f"requests: {' '.join(skill.capabilities) or 'no capabilities'}",
        f"level: {level}",
        *describe_packages(skill, environment),
        *_describe_limits(skill),
        *_describe_allowed(skill),
    ]
    for tool in data["tools"]:
        lines += ["", f"{skill.key}.{tool['signature']}", f"  {tool['description']}"]
        for key, field in tool["parameters"].get("properties", {}).items():
            lines.append(f"  {key}: {field.get('type', 'any')}  {field.get('description', '')}".rstrip())
    lines += ["", *map(_describe, skill.problems)]
    print_data(arguments, data, joined(lines).rstrip())
    return ExitCode.SUCCESS


def _validate(arguments: Namespace) -> ExitCode:
    if not arguments.folder.is_dir():
        what = "is not a folder" if arguments.folder.exists() else "does not exist"
        raise UsageError(f"`{arguments.folder}` {what}", hint="pass the folder that contains SKILL.md")

    async def main() -> list[SkillProblem]:
        async with make_host(arguments) as host:
            return await validate_folder(host, arguments.folder)

    problems = run_async(main)
    text = joined(map(_describe, problems)) or f"{arguments.folder}: no problems found"
    print_data(arguments, {"problems": [_problem_data(problem) for problem in problems]}, text)
    if problems:
        fatal = sum(problem.fatal for problem in problems)
        notice(f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'}, {fatal} fatal")
    return ExitCode.FAILURE if problems else ExitCode.SUCCESS


def _names(skill: SkillSpec) -> list[str]:
    return [skill.name, skill.key, *(tool.full_name for tool in skill.tools)]


def _describe_limits(skill: SkillSpec) -> list[str]:
    lines = [f"memory limit: {skill.memory / (1 << 20):g} MiB"] if skill.memory else []
    lines += ["each call runs in its own worker"] if skill.alone else []
    return lines + _RESUME.get(skill.resume, [])


def _describe(problem: SkillProblem) -> str:
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"{'error' if problem.fatal else 'warning'}: {problem.source}: {problem.reason}{hint} [{problem.code}]"


def _problem_data(problem: SkillProblem) -> dict[str, Any]:
    return {name: getattr(problem, name) for name in ("source", "code", "reason", "hint", "fatal")}


def _describe_allowed(skill: SkillSpec) -> list[str]:
    tools, unknown = mapped_tools(skill.allowed_tools)
    lines = [f"pre-approved while it is active, if you grant it: {', '.join(tools)}"] if tools else []
    return lines + ([f"listed in `allowed-tools`, but unknown here: {', '.join(unknown)}"] if unknown else [])


def _data(skill: SkillSpec, level: str) -> dict[str, Any]:
    pre_approved, unknown = mapped_tools(skill.allowed_tools)
    return {
        "name": skill.name,
        "key": skill.key,
        "description": skill.description,
        "source": str(skill.source),
        "origin": skill.origin,
        "capabilities": list(skill.capabilities),
        "level": level,
        "allowed_tools": list(skill.allowed_tools),
        "pre_approved": {"tools": list(pre_approved), "unknown": list(unknown)},
        "requirements": list(skill.requirements),
        "memory": skill.memory,
        "alone": skill.alone,
        "resume": skill.resume,
        "tools": [
            {
                "name": tool.name,
                "full_name": tool.full_name,
                "model_name": tool.model_name,
                "description": tool.description,
                "signature": tool.signature,
                "parameters": dict(tool.parameters),
                "timeout": tool.timeout,
            }
            for tool in skill.tools
        ],
        "problems": [_problem_data(problem) for problem in skill.problems],
    }
