"""Serve an editor as the command line says."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, cast

import anyio
from acp import run_agent
from sideband.command_line import make_host
from sideband.errors import SidebandError
from sideband_agent import Budget
from sideband_serving import ClaimedStreams, Lines

from ._agent import AcpAgent
from ._choices import SessionChoices
from ._limits import AcpLimits
from ._sessions import OpenSessions
from ._transport import AcpTransport

if TYPE_CHECKING:
    from sideband import Host


async def serve(arguments: Namespace, streams: ClaimedStreams) -> None:
    """Serve the editor until it closes its end.

    Without a host, each request for a session is answered with the reason: editors show little of what is printed.

    Raises:
        SidebandError: at the end, if the host could not be opened.
    """
    limits = AcpLimits()
    failure: SidebandError | None = None
    async with AsyncExitStack() as stack:
        sessions: OpenSessions | None = None
        try:
            host = await stack.enter_async_context(_host(arguments))
            choices = _choices(arguments, host)
        except SidebandError as error:
            failure = error
        else:
            sessions = await stack.enter_async_context(OpenSessions.opened(host, choices, limits))
        agent = AcpAgent(sessions, ignores_servers=arguments.ignore_servers, failure=failure)
        await serve_client(agent, streams, limits)
    if failure is not None:
        raise failure


async def serve_client(agent: AcpAgent, streams: ClaimedStreams, limits: AcpLimits) -> None:
    """Serve one client until it closes its end."""

    async def end() -> None:
        if agent.sessions is not None:
            agent.sessions.cancel_all()

    transport = AcpTransport(Lines(streams, limits.message), limits.requests, limits.seconds, end)
    async with anyio.create_task_group() as tasks:

        async def write() -> None:
            await transport.write()
            tasks.cancel_scope.cancel()

        tasks.start_soon(write)
        # It has neither forks nor extensions, which the SDK notices.
        await run_agent(cast("Any", agent), transport, use_unstable_protocol=True)
        tasks.cancel_scope.cancel()


def _host(arguments: Namespace) -> Host:
    return make_host(arguments, skill_dirs=arguments.skill_dir, grants=_by_skill(arguments.grant))


def _choices(arguments: Namespace, host: Host) -> SessionChoices:
    named = {"money": arguments.max_cost, "tokens": arguments.max_tokens_total}
    given = {name: value for name, value in named.items() if value is not None}
    budget = Budget(**{**host.settings.settings.agent.budget.model_dump(), **given}) if given else None
    tools = None if arguments.tools is None else [name for names in arguments.tools for name in names]
    return SessionChoices(model=arguments.model, tools=tools, mode=arguments.mode, budget=budget)


def _by_skill(grants: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, capability in grants:
        found.setdefault(name, []).append(capability)
    return found
