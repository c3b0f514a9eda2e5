"""Installation and description of the packages that skills depend on."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from sideband import SidebandError, UsageError
from sideband.command_line import make_host, notice, print_data, run_async
from sideband.exit_codes import ExitCode
from sideband.suggestions import did_you_mean

from .._terminal._progressbar import Progressbar
from .._terminal._tables import format_table
from ._dirs import skill_hint

if TYPE_CHECKING:
    from sideband import Host
    from sideband.environments import Environment
    from sideband.loading import LoadedSkills, SkillSpec
    from sideband_skill_packages import PackageSource


def install(arguments: Namespace) -> ExitCode:
    """Install the dependencies of the named skills. A failure does not stop the others from being installed."""
    if bool(arguments.names) == arguments.all:
        raise UsageError("expected either skill names or --all", hint="`sideband skills list` shows the names")
    if arguments.wheels is not None and not arguments.wheels.is_dir():
        raise UsageError(f"--wheels: `{arguments.wheels}` is not a folder", hint="pass a folder that contains wheels")
    rows, errors = run_async(lambda: _install_all(arguments))
    if errors and len(rows) == 1:
        raise errors[0]
    text = format_table(
        ["skill", "packages", ""], [[row["name"], row["state"], _detail(row)] for row in rows], wrapped=True
    )
    print_data(arguments, {"skills": rows}, text if rows else "no skills")
    return errors[0].exit_code if errors else ExitCode.SUCCESS


async def _install_all(arguments: Namespace) -> tuple[list[dict[str, Any]], list[SidebandError]]:
    from sideband_skill_packages import PackageSource

    bar = Progressbar()
    source = PackageSource(
        wheels=arguments.wheels,
        offline=arguments.offline,
        build=arguments.build,
        on_progress=None if arguments.json else bar.line,
    )
    rows: list[dict[str, Any]] = []
    errors: list[SidebandError] = []
    async with make_host(arguments, skill_dirs=arguments.skill_dir) as host:
        for skill in _chosen(arguments, await host.skills()):
            try:
                rows.append(await _install_one(host, skill, source))
            except SidebandError as error:
                errors.append(error)
                rows.append({"name": skill.name, "state": "failed", "error": error.as_dict()})
            finally:
                bar.close()
    return rows, errors


def _chosen(arguments: Namespace, loaded: LoadedSkills) -> list[SkillSpec]:
    if arguments.all:
        for problem in loaded.problems:
            if problem.fatal:
                notice(f"notice: {problem.source}: {problem.reason}")
        return list(loaded.skills)
    by_name = {name: skill for skill in loaded.skills for name in (skill.name, skill.key)}
    for name in arguments.names:
        if name not in by_name:
            reasons = [problem.reason for problem in loaded.problems if problem.fatal]
            hint = skill_hint("`sideband skills list` shows all", arguments.skill_dir, unknown=True)
            details = f" ({'; '.join(reasons)})" if reasons else ""
            raise UsageError(f"unknown skill `{name}`{did_you_mean(name, by_name)}{details}", hint=hint)
    return list({skill.key: skill for skill in map(by_name.__getitem__, arguments.names)}.values())


async def _install_one(host: Host, skill: SkillSpec, source: PackageSource) -> dict[str, Any]:
    from sideband_skill_packages import install as install_packages

    before = host.environments.find(skill)
    environment = before or await install_packages(host.environments, skill, source)
    state = "not needed" if environment is None else "installed" if before is None else "already installed"
    return {"name": skill.name, "state": state, **packages_data(skill, environment)}


def _detail(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{row['error']['message']} ({row['error']['hint']})"
    return _listed(row["packages"])


def _listed(packages: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in packages.items())


def find_environment(host: Host, skill: SkillSpec) -> Environment | None:
    """Return the environment of a skill; ``None`` if it is not installed or not supported here."""
    try:
        return host.environments.find(skill)
    except SidebandError as error:
        notice(f"notice: {error.message}")
        return None


def packages_data(skill: SkillSpec, environment: Environment | None) -> dict[str, Any]:
    """Return the requirements of a skill and its installed packages as data."""
    return {
        "requirements": list(skill.requirements),
        "requires_python": skill.requires_python,
        "environment": str(environment.path) if environment else None,
        "packages": dict(environment.packages) if environment else {},
    }


def describe_packages(skill: SkillSpec, environment: Environment | None) -> list[str]:
    """Describe the requirements of a skill and its installed packages in lines; none without requirements."""
    lines = [f"requires Python {skill.requires_python}"] if skill.requires_python else []
    if skill.requirements:
        lines.append(f"depends on: {', '.join(skill.requirements)}")
        installed = _listed(dict(environment.packages)) if environment else "nothing yet; run `sideband skills install`"
        lines.append(f"installed: {installed}")
    return lines
