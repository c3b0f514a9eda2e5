"""``sideband doctor``: the settings and their sources, the isolation on this machine, and all problems."""

from __future__ import annotations

import platform
import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._audit._record_text import describe_verdict, verdict_data
from .._host._options import add_host_options, load
from .._host._plugins import load_plugins
from .._host._running import run
from .._terminal._printing import joined, print_data
from .._terminal._tables import format_table, paragraph

if TYPE_CHECKING:
    from sideband import Host
    from sideband.settings import LoadedSettings

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("doctor", "show the effective settings, the isolation and all problems", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    add_host_options(parser)


def _run(arguments: Namespace) -> ExitCode:
    settings = load(arguments)

    async def main() -> dict[str, Any]:
        from sideband import Host

        async with Host(settings=settings) as host:
            return await _examine(host, settings)

    data = run(main)
    print_data(arguments, data, "\n\n".join(_sections(data)))
    return ExitCode.SUCCESS if data["ok"] else ExitCode.FAILURE


async def _examine(host: Host, settings: LoadedSettings) -> dict[str, Any]:
    from sideband import __version__
    from sideband.ledger import verify

    await load_plugins(host)
    probe = await host.sandbox.probe()
    loaded = await host.skills()
    verdict = await verify(host.ledger.folder, host.store)
    policy = settings.settings.policy
    plugins = [
        {"plugin": record.label, "state": record.state.value, "reason": record.reason}
        for record in host.plugins.records
        if not record.state.usable
    ]
    problems = [
        *host.plugins.problems,
        *(f"{one['plugin']} is {one['state']}: {one['reason']}" for one in plugins if one["state"] != "denied"),
        *(f"{problem.source}: {problem.reason}" for problem in loaded.problems),
        *(f"ledger: {problem}" for problem in verdict.problems),
    ]
    if probe.isolation < policy.tier:
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
        "home": str(host.home),
        "settings": [{"key": key, "value": value, "source": source} for key, value, source in settings.effective()],
        "isolation": {
            "required": policy.tier.label,
            "alone": policy.alone,
            "available": probe.isolation.label,
            "proofs": list(probe.proofs),
            "gaps": list(probe.gaps),
            "hints": list(probe.hints),
        },
        "plugins": {"usable": sum(one.state.usable for one in host.plugins.records), "unusable": plugins},
        "skills": len(loaded.skills),
        "recovered": [{"effect": one.effect, "op": one.op, "status": one.status} for one in host.recovered],
        "ledger": verdict_data(verdict) | {"text": describe_verdict(verdict)},
        "notices": list(settings.notices),
        "problems": list(dict.fromkeys(problems)),  # each plugin of a conflict reports it
    }


def _sections(data: dict[str, Any]) -> list[str]:
    isolation = data["isolation"]
    shared = "one worker for each call" if isolation["alone"] else "calls with the same rights share a worker"
    rows = [[one["key"], one["value"], one["source"]] for one in data["settings"]]
    sections = [
        f"sideband {data['version']}, Python {data['python']}, {data['system']}\nstate in {data['home']}",
        format_table(["setting", "value", "source"], rows),
        "\n".join(
            [
                f"isolation: {isolation['available']} (required: {isolation['required']}); {shared}",
                *_paragraphs("verified: a worker", [", ".join(isolation["proofs"])] if isolation["proofs"] else []),
                *_paragraphs("gap:", isolation["gaps"]),
                *_paragraphs("hint:", isolation["hints"]),
            ]
        ),
        _counts(data),
        data["ledger"]["text"],
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


def _paragraphs(label: str, texts: list[str]) -> list[str]:
    return [paragraph(f"{label} {text}", "  ", "    ") for text in texts]


def _counts(data: dict[str, Any]) -> str:
    plugins = data["plugins"]
    skills = f"{data['skills']} {'skill' if data['skills'] == 1 else 'skills'}"
    return f"plugins: {plugins['usable']} usable, {len(plugins['unusable'])} unusable; {skills}"
