"""The options shared by `run` and `chat`, and the agent that they configure."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from sideband import UsageError
from sideband.command_line import add_host_options, add_output_options, make_host
from sideband.suggestions import did_you_mean

from .._arguments._grants import grants_by_skill
from .._arguments._types import count
from .._sessions._lookup import resolve_session
from .._skills._dirs import add_skill_dirs
from .._terminal._progressbar import Progressbar
from .._terminal._questions import ask_at_terminal
from .._terminal._user_questions import asker_of
from ._availability import known_model, unconfigured
from ._instructions import ask_about_instructions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from sideband import Host
    from sideband_agent import Agent, Budget

    from .._terminal._questions import Questions

_MAX_PROBLEMS = 5
_SOURCES_SECONDS = 1.0
_REPORTED = frozenset({"skill.duplicate", "skill.source.empty"})


def add_agent_options(parser: ArgumentParser, *, json: bool = True) -> None:
    """Add the options for session, model, tools and limits, and the options of the host."""
    add_host_options(parser, json=json)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-s", "--session", metavar="SESSION", help="continue this session: an id, a name, or `last`")
    where.add_argument(
        "-c",
        "--continue",
        dest="session",
        action="store_const",
        const="last",
        help="continue the last session of this folder, or else of any; the same as --session last",
    )
    where.add_argument("--new", action="store_true", help="start a new session (the default)")
    parser.add_argument("-m", "--model", metavar="PROVIDER:MODEL", help="the model; see `sideband models list`")
    parser.add_argument(
        "--tools",
        action="append",
        type=_names,
        metavar="NAME,…",
        help="allow only these tools; `github.*` matches a prefix",
    )
    parser.add_argument("--max-cost", type=_money, metavar="USD", help="the cost limit of the session in US dollars")
    parser.add_argument("--max-tokens-total", type=count, metavar="TOKENS", help="the token limit of the session")
    parser.add_argument("--thinking", action="store_true", help="show the model's thinking")
    add_output_options(
        parser,
        quiet="show only answers, questions and problems",
        verbose="also show thinking, the arguments and results of tools, and the ids of effects",
    )
    parser.add_argument(
        "--grant",
        action="append",
        default=[],
        metavar="SKILL=CAPABILITY",
        help="grant a skill this capability for now, in addition to its other rights; may be repeated",
    )
    parser.add_argument(
        "--mode",
        metavar="MODE",
        help="when to ask about changes, from now on in this session: manual, assist, semi, full or plan",
    )
    parser.add_argument("--yes", action="store_true", help="answer yes to all questions of skills and guards")
    add_skill_dirs(parser)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _money(text: str) -> float:
    try:
        value = float(text.removeprefix("$"))
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ArgumentTypeError(f"expected a positive amount of US dollars, got `{text}`")
    return value


@asynccontextmanager
async def open_agent(arguments: Namespace, questions: Questions, **options: Any) -> AsyncIterator[Agent]:
    """Open the agent for this command line, and its host.

    Args:
        arguments: the command line.
        questions: answers requests for grants and approvals.
        options: more arguments of ``Agent``.

    Raises:
        ModelUnconfigured: if no model is configured; the hint shows how to configure one.
    """
    from anyio import move_on_after
    from sideband_agent import Agent, ModelMissing

    grants = grants_by_skill(arguments.grant)
    host = make_host(
        arguments,
        skill_dirs=arguments.skill_dir,
        grants=grants,
        approver=questions.approver(),
    )
    async with host:
        await _check_skills(host, grants)
        agent = Agent(
            host,
            session=await _session(host, arguments.session),
            tools=_named(arguments.tools),
            channel="cli",
            budget=_budget(arguments, host),
            approval_mode="assist" if questions.has_person else None,
            asker=asker_of(questions.ask),
            **options,
        )
        async with agent:
            if arguments.model is not None and agent.session.context().model != arguments.model:
                # stored in the session, for its later runs
                await agent.select_model(await known_model(host, arguments.model))
            if arguments.mode is not None:
                await agent.select_approval_mode(arguments.mode)
            try:
                _ = agent.model
            except ModelMissing:
                raise await unconfigured(host) from None
            await ask_about_instructions(host, ask_at_terminal(Progressbar()) if questions.has_person else None)
            await _report_skill_problems(host)
            with move_on_after(_SOURCES_SECONDS):  # so that the first turn has the tools that are known in advance
                await agent.wait_for_sources()
            yield agent


async def _check_skills(host: Host, names: Iterable[str]) -> None:
    """Check that skills exist.

    Raises:
        UsageError: if one of them does not.
    """
    for name in names:
        known = {one for skill in (await host.skills()).skills for one in (skill.name, skill.key)}
        if name not in known:
            raise UsageError(
                f"--grant names the unknown skill `{name}`{did_you_mean(name, known)}",
                hint="run `sideband skills list` to see all skills, and why a skill is not loaded",
            )


async def _report_skill_problems(host: Host) -> None:
    """Log the skills and tools that are not used, so that the user learns why the model does not use them."""
    import logging

    loaded = await host.skills()
    of_skills = [problem for skill in loaded.skills for problem in skill.problems]
    found = dict.fromkeys([*loaded.problems, *of_skills])
    problems = [
        problem
        for problem in found
        if problem.fatal or problem.code in _REPORTED or problem.code.startswith("skill.python.")
    ]
    for problem in problems[:_MAX_PROBLEMS]:
        logging.getLogger(__name__).warning("%s: %s", problem.source, problem.reason)
    if len(problems) > _MAX_PROBLEMS:
        hidden = len(problems) - _MAX_PROBLEMS
        logging.getLogger(__name__).warning("%d more problems with skills; run `sideband skills list`", hidden)


async def _session(host: Host, name: str | None) -> str | None:
    from sideband_agent.sessions import Sessions

    return None if name is None else await resolve_session(Sessions(host.store, host.home), name)


def _named(lists: list[list[str]] | None) -> list[str] | None:
    return None if lists is None else [name for names in lists for name in names]


def _budget(arguments: Namespace, host: Host) -> Budget | None:
    """Return the configured budget, overridden by the options; ``None`` without such options."""
    from sideband_agent import Budget

    named = {"money": arguments.max_cost, "tokens": arguments.max_tokens_total}
    given = {name: value for name, value in named.items() if value is not None}
    return Budget(**{**host.settings.settings.agent.budget.model_dump(), **given}) if given else None
