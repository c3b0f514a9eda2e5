"""``sideband demo``: run a real skill on this machine, and show its effects."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from sideband.command_line import add_host_options, make_host, notice, print_json, print_text, run_async
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._audit._record_text import describe_verdict, verdict_data
from .._terminal._effect_text import describe_effects, result_data
from .._terminal._progressbar import Progressbar
from .._terminal._questions import Questions
from .._terminal._tables import format_table, paragraph

if TYPE_CHECKING:
    from sideband import CallResult, Host
    from sideband.ledger import Verification
    from sideband.workers import Probe

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("demo", "run a real skill and show its effects", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    add_host_options(parser)


def _run(arguments: Namespace) -> ExitCode:
    async def main() -> tuple[CallResult, Probe, Verification]:
        from sideband.ledger import verify

        await _accept_available_isolation(arguments)
        async with make_host(arguments, approver=Questions(None, yes=True).approver()) as host:
            result = await _harvest(host, quiet=arguments.json)
            return result, await host.sandbox.probe(), await verify(host.ledger.folder, host.store)

    result, probe, verdict = run_async(main)
    if arguments.json:
        print_json({**result_data(result), "audit": verdict_data(verdict)})
    else:
        print_text("\n\n".join(_sections(result, probe, verdict)))
    return ExitCode.SUCCESS if verdict.ok else ExitCode.FAILURE


async def _accept_available_isolation(arguments: Namespace) -> None:
    """Accept weaker isolation than required, with a notice: the demo's skill is part of this package."""
    from sideband.workers import IsolationUnavailable

    async with make_host(arguments) as host:
        try:
            await host.sandbox.require()
        except IsolationUnavailable as error:
            notice(f"{error.message}; the demo runs anyway, other skills would not")
            arguments.isolation = error.available


async def _harvest(host: Host, *, quiet: bool) -> CallResult:
    from sideband import CallRequest

    bar = Progressbar()
    try:
        return await host.run(CallRequest("demo.harvest", on_progress=None if quiet else bar.show))
    finally:
        bar.close()


def _sections(result: CallResult, probe: Probe, verdict: Verification) -> list[str]:
    planets: list[dict[str, Any]] = result.output["planets"]
    columns = list(planets[0]) if planets else []
    refused = result.output["refused"]
    proofs = paragraph(", ".join(probe.proofs), "  just verified: ", "  ")
    return [
        "The skill fetched these pages, stored them and read them back:\n"
        + format_table(columns, [[row[column] for column in columns] for row in planets]),
        f"Its grant: {' '.join(result.grant)}",
        f"One request exceeded the grant: {refused['message'].partition(' (granted: ')[0]} [{refused['code']}]",
        "Its effects, each checked, run and recorded by the host:\n" + describe_effects(result.effects),
        f"The isolation of the worker: {probe.isolation.label}\n{proofs}",
        describe_verdict(verdict)
        + "\n`sideband audit tail` shows the ledger; `sideband call demo.harvest --json` prints the result as data.",
    ]
