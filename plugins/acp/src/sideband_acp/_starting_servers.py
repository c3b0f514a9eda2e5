"""The question whether an MCP server that the client passes may start, and its start."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from acp.schema import PermissionOption
from sideband.errors import SidebandError
from sideband.rendering import render

from ._given_servers import GivenServer, ServerAnswer, ServerAnswers
from ._own_questions import OwnQuestion, OwnQuestions
from ._text import span

if TYPE_CHECKING:
    from sideband_agent import Agent

_OPTIONS = (
    PermissionOption(option_id="start", name="Start it without network", kind="allow_always"),
    PermissionOption(option_id="network", name="Start it with network", kind="allow_always"),
    PermissionOption(option_id="later", name="Not now", kind="reject_once"),
    PermissionOption(option_id="never", name="Never start it", kind="reject_always"),
)
_NOT_STARTED = "It is not started in this session. You are asked again in the next one."
_RESULTS = {
    "start": "It is started without network, also in later sessions, until its command changes.",
    "network": "It is started with network, also in later sessions, until its command changes.",
    "later": _NOT_STARTED,
    "never": "It is not started, until its command changes.",
    "": _NOT_STARTED,
}
_REMEMBERED: dict[str, ServerAnswer] = {"start": "start", "network": "network", "never": "never"}
_log = logging.getLogger("sideband.acp")


async def start_servers(agent: Agent, servers: Sequence[GivenServer], questions: OwnQuestions) -> None:
    """Offer the tools of servers to an agent, after the user has accepted each, unless that was answered before.

    A server that cannot be used is reported, and the others are.

    Args:
        agent: the agent.
        servers: the servers.
        questions: asks the user.
    """
    answers = ServerAnswers(agent.host.home)
    for one in servers:
        try:
            answer = answers.of(one) or await _asked(one, answers, questions)
            if answer in ("start", "network"):
                await _offer(agent, one, answer)
        except SidebandError as error:
            _log.warning("the MCP server `%s` is not used: %s", render(one.title), error.message)


async def _asked(one: GivenServer, answers: ServerAnswers, questions: OwnQuestions) -> ServerAnswer | None:
    text = "\n".join(map(render, one.lines()))  # no argument can imitate another line
    question = OwnQuestion(f"Start the MCP server {span(one.title)}?", [text], _OPTIONS, "execute", _RESULTS)
    if question.is_too_long:
        _log.warning("the MCP server `%s` is not used: its command is too long to be shown", span(one.title))
        return None
    answer = _REMEMBERED.get(await questions.ask(question))
    if answer is not None:
        answers.remember(one, answer)
    return answer


async def _offer(agent: Agent, one: GivenServer, answer: ServerAnswer) -> None:
    if not await agent.offer_servers([one.accepted(answer)]):
        _log.warning("the MCP server `%s` is not used: no plugin starts it", render(one.title))
