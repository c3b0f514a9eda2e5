"""The options that `run` and `chat` have in common, and the agent that they describe."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from .._arguments._types import count
from .._host._options import add_host_options, make_host
from .._sessions._lookup import session_meant
from .._skills._dirs import add_skill_dirs
from ._availability import unconfigured

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sideband import Host
    from sideband_agent import Agent, Budget

    from .._terminal._questions import Questions

_SHOWN_PROBLEMS = 5


def add_agent_options(parser: ArgumentParser) -> None:
    """The options that choose session, model, tools and limits, and those of the host."""
    add_host_options(parser)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--session", metavar="SESSION", help="go on with this one: an id, a name, or `last`")
    where.add_argument("--new", action="store_true", help="begin a new session, which is what happens anyway")
    parser.add_argument("--model", metavar="PROVIDER:MODEL", help="see `sideband models list`")
    parser.add_argument(
        "--tools", action="append", type=_names, metavar="NAME,…", help="only these; `github.*` for all that begin so"
    )
    parser.add_argument("--max-cost", type=_money, metavar="USD", help="what the session may cost in all")
    parser.add_argument("--max-tokens-total", type=count, metavar="TOKENS", help="the tokens it may use in all")
    parser.add_argument("--thinking", action="store_true", help="show what the model thinks")
    parser.add_argument("--yes", action="store_true", help="say yes to whatever skills and guards ask")
    add_skill_dirs(parser)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _money(text: str) -> float:
    try:
        value = float(text.removeprefix("$"))
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ArgumentTypeError(f"`{text}` is no amount of US dollars above 0")
    return value


@asynccontextmanager
async def open_agent(arguments: Namespace, questions: Questions, **options: Any) -> AsyncIterator[Agent]:
    """The agent for this command line, and its host.

    Args:
        arguments: the command line.
        questions: whom to ask.
        options: the agent's own.

    Raises:
        ModelUnconfigured: no model is named anywhere; the hint shows how to get one.
    """
    from sideband_agent import Agent, ModelMissing

    host = make_host(
        arguments,
        skill_dirs=arguments.skill_dir,
        asker=questions.grant_asker(),
        approver=questions.approver(),
    )
    async with host:
        agent = Agent(
            host,
            session=await _session(host, arguments.session),
            tools=_named(arguments.tools),
            channel="cli",
            budget=_budget(arguments, host),
            approver=questions.tool_approver(),
            **options,
        )
        async with agent:
            if arguments.model is not None and agent.session.context().model != arguments.model:
                await agent.select_model(arguments.model)  # kept, so that the session goes on with it
            try:
                _ = agent.model
            except ModelMissing:
                raise await unconfigured(host) from None
            await _tell_missing_skills(host)
            yield agent


async def _tell_missing_skills(host: Host) -> None:
    """Name the skills and tools that can't be used: a model without them looks like one that is not able to do it."""
    import logging

    loaded = await host.skills()
    of_skills = [problem for skill in loaded.skills for problem in skill.problems]
    found = dict.fromkeys([*loaded.problems, *of_skills])
    problems = [problem for problem in found if problem.fatal or problem.code.startswith("skill.python.")]
    for problem in problems[:_SHOWN_PROBLEMS]:
        logging.getLogger(__name__).warning("%s: %s", problem.source, problem.reason)
    if len(problems) > _SHOWN_PROBLEMS:
        hidden = len(problems) - _SHOWN_PROBLEMS
        logging.getLogger(__name__).warning("%d more problems with skills; `sideband skills list` shows them", hidden)


async def _session(host: Host, wanted: str | None) -> str | None:
    from sideband_agent.sessions import Sessions

    return None if wanted is None else await session_meant(Sessions(host.store, host.home), wanted)


def _named(lists: list[list[str]] | None) -> list[str] | None:
    return None if lists is None else [name for names in lists for name in names]


def _budget(arguments: Namespace, host: Host) -> Budget | None:
    """What the options say, and for the rest what is configured."""
    from sideband_agent import Budget

    named = {"money": arguments.max_cost, "tokens": arguments.max_tokens_total}
    given = {name: value for name, value in named.items() if value is not None}
    return Budget(**{**host.settings.settings.agent.budget.model_dump(), **given}) if given else None
