"""``sideband doctor``: the settings and their sources, the isolation on this machine, and all problems."""

from __future__ import annotations

import platform
import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from sideband.command_line import add_host_options, joined, load_options, print_data, run_async
from sideband.commands import Command
from sideband.exit_codes import ExitCode
from sideband.suggestions import did_you_mean

from .._audit._record_text import describe_verdict, verdict_data
from .._host._plugins import open_plugins
from .._host._tools import list_tools
from .._plugins._shown_values import effective_settings
from .._terminal._tables import format_table, paragraph

if TYPE_CHECKING:
    from sideband.sandboxing import Probe
    from sideband.settings import LoadedSettings, Policy

    from .._host._plugins import OpenPlugins

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("doctor", "show the effective settings, the isolation and all problems", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    add_host_options(parser)


def _run(arguments: Namespace) -> ExitCode:
    settings = load_options(arguments, tolerant=True)

    async def main() -> dict[str, Any]:
        async with open_plugins(settings, reads_only=True) as opened:
            return await _examine(opened, settings)

    data = run_async(main)
    print_data(arguments, data, "\n\n".join(_sections(data)))
    return ExitCode.SUCCESS if data["ok"] else ExitCode.FAILURE


async def _examine(opened: OpenPlugins, settings: LoadedSettings) -> dict[str, Any]:
    from sideband import __version__
    from sideband.calls import SkillCatalog
    from sideband.ledger import verify
    from sideband.settings import default_home

    await opened.load_all()
    host, policy = opened.host, settings.settings.policy
    if any(record.state.broken for record in opened.plugins.records):
        # Each is reported below. A strict host would refuse to go on.
        opened.plugins.policy = opened.plugins.policy._replace(strict=False)
    # Without the policy about plugins, no sandbox and no loader may be imported.
    sound = settings.policy_problem is None
    probe = await _probe(opened, policy) if sound else None
    loaded = (
        await (host.skills() if host is not None else SkillCatalog(opened.plugins, settings.skill_folders).all())
        if sound
        else None
    )
    verdict = None
    problems_of_ledger: list[object] = []
    if host is not None:
        try:
            verdict = await verify(host.ledger.folder, host.store)
            problems_of_ledger += verdict.problems
        except Exception as error:  # noqa: BLE001  a store may raise anything
            problems_of_ledger.append(f"it cannot be examined: {type(error).__name__}: {error}")
    if host is not None and sound:
        await list_tools(host)
    closed = host.broker.sources.closed if host is not None else {}
    problems_of_skills = loaded.problems if loaded else ()
    unusable = [record for record in opened.plugins.records if not record.state.usable]
    problems = [
        *opened.problems,
        *opened.plugins.problems,
        *(f"{one.label} is {one.state.value}: {one.reason}" for one in unusable if one.state.broken),
        *(f"{problem.source}: {problem.reason}" for problem in problems_of_skills if problem.fatal),
        *(f"ledger: {problem}" for problem in problems_of_ledger),
    ]
    if probe is not None and probe.isolation < policy.tier:
        accept = f"{probe.isolation.label},call" if policy.alone else probe.isolation.label
        problems.append(
            f"isolation `{policy.tier.label}` is required, but only `{probe.isolation.label}` is available: follow the "
            f"hints under `isolation`, or accept it with --isolation {accept}"
        )
    return {
        "ok": not problems,
        "version": __version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "home": str(default_home()),
        "settings": await effective_settings(settings, opened.plugins),
        "isolation": probe
        and {
            "required": policy.tier.label,
            "alone": policy.alone,
            "available": probe.isolation.label,
            "proofs": list(probe.proofs),
            "gaps": list(probe.gaps),
            "hints": list(probe.hints),
        },
        "plugins": {
            "usable": sum(one.state.usable for one in opened.plugins.records),
            "unusable": [{"plugin": one.label, "state": one.state.value, "reason": one.reason} for one in unusable],
        },
        "skills": len(loaded.skills) if loaded else None,
        "recovered": [{"effect": one.effect, "op": one.op, "status": one.status} for one in host.recovered]
        if host is not None
        else [],
        "ledger": verdict and verdict_data(verdict) | {"text": describe_verdict(verdict)},
        "notices": [
            *settings.notices,
            *_unused_grants(opened, settings),
            *(f"the source of secrets `{name}` is closed: {reason}" for name, reason in closed.items()),
            *(f"{problem.source}: {problem.reason}" for problem in problems_of_skills if not problem.fatal),
            *(host.tools.problems if host is not None else ()),
        ],
        "problems": list(dict.fromkeys(problems)),  # each plugin of a conflict reports it
    }


def _unused_grants(opened: OpenPlugins, settings: LoadedSettings) -> list[str]:
    """Return notices about rights for plugins that are not in use, which a typing error can be the reason for."""
    known = opened.plugins.names("op", broken=True)
    names = [one.removeprefix("plugin:") for one in settings.settings.grants if one.startswith("plugin:")]
    return [
        f"`[grants]` gives rights to the plugin `{name}`, but no op family has this name{did_you_mean(name, known)}"
        for name in names
        if name not in known
    ]


async def _probe(opened: OpenPlugins, policy: Policy) -> Probe:
    from sideband.calls import ChosenSandbox

    if opened.host is not None:
        return await opened.host.sandbox.probe()
    sandbox = ChosenSandbox(opened.plugins, policy.tier, alone=policy.alone)
    try:
        return await sandbox.probe()
    finally:
        await sandbox.close()


def _sections(data: dict[str, Any]) -> list[str]:
    rows = [[one["key"], one["value"], one["source"]] for one in data["settings"]]
    sections = [
        f"sideband {data['version']}, Python {data['python']}, {data['system']}\nstate in {data['home']}",
        format_table(["setting", "value", "source"], rows),
        _isolation(data["isolation"]),
        _counts(data),
        data["ledger"]["text"] if data["ledger"] else "ledger: not examined, because the host or its store is unusable",
        *(
            f"recovered after a crash: effect {one['effect']} ({one['op']}) is {one['status']}"
            for one in data["recovered"]
        ),
    ]
    if data["notices"]:
        sections.append(joined(f"notice: {notice}" for notice in data["notices"]))
    problems = joined(f"  - {problem}" for problem in data["problems"])
    sections.append(f"problems:\n{problems}" if problems else "no problems found")
    return sections


def _isolation(isolation: dict[str, Any] | None) -> str:
    if isolation is None:
        return "isolation: not examined, because the configuration is invalid"
    shared = "one worker for each call" if isolation["alone"] else "calls with the same rights share a worker"
    lines = [
        f"isolation: {isolation['available']} (required: {isolation['required']}); {shared}",
        *_paragraphs("verified: a worker", [", ".join(isolation["proofs"])] if isolation["proofs"] else []),
        *_paragraphs("gap:", isolation["gaps"]),
        *_paragraphs("hint:", isolation["hints"]),
    ]
    return "\n".join(lines)


def _paragraphs(label: str, texts: list[str]) -> list[str]:
    return [paragraph(f"{label} {text}", "  ", "    ") for text in texts]


def _counts(data: dict[str, Any]) -> str:
    plugins = data["plugins"]
    count = data["skills"]
    skills = "skills not examined" if count is None else f"{count} {'skill' if count == 1 else 'skills'}"
    return f"plugins: {plugins['usable']} usable, {len(plugins['unusable'])} unusable; {skills}"
