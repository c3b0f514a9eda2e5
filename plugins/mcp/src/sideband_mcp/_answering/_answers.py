"""Answer what a server asks during a call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from sideband.asking import QuestionOption, UserQuestion
from sideband.errors import SidebandError
from sideband.ops import OpError
from sideband.tools import ToolContext

from .._config import ServerConfig
from ._forms import FormInvalid, has_defaults, questions_of, shortened, values_of
from ._samples import SampleInvalid, request_of

_TRIES = 3
_LONGEST_ADDRESS = 4_096
_PLAIN = re.compile(r"https?://[!-\[\]-~]+\Z")  # a browser takes `\` for `/`
_OPENED, _SENT, _REFUSED = "opened", "yes", "no"


async def answer_to(ask: Mapping[str, Any], server: str, settings: ServerConfig, ctx: ToolContext) -> Mapping[str, Any]:
    """Return the parameters of an answer: ``action`` and ``content``.

    Without a user who can be asked, the answer declines.
    """
    try:
        match ask["kind"]:
            case "form":
                return await _fill_in(ask, server, ctx)
            case "address":
                return await _open(ask, server, ctx)
            case _:
                return await _sample(ask, settings, ctx)
    except (FormInvalid, SampleInvalid) as error:
        await ctx.progress(message=f"a question of the MCP server `{server}` is invalid: {error}")
        return {"action": "decline"}
    except OpError as error:
        await ctx.progress(message=f"an answer to the MCP server `{server}` failed: {error.message}")
        return {"action": "decline"}
    except SidebandError as error:
        if error.code != "agent.asker":
            raise
        return {"action": "decline"}


async def _fill_in(ask: Mapping[str, Any], server: str, ctx: ToolContext) -> Mapping[str, Any]:
    text, problem = f"The MCP server `{server}` asks: {shortened(ask['message'])}", ""
    for _ in range(_TRIES):
        try:
            questions = questions_of(ask["form"], text + problem)
            answers = await ctx.ask(questions)
            is_open = not any(one.chosen or one.text for one in answers)
            if is_open and not (has_defaults(ask["form"]) and await _sends_defaults(server, ctx)):
                return {"action": "cancel"}
            return {"action": "accept", "content": values_of(ask["form"], answers)}
        except FormInvalid as error:
            problem = f" ({error})"
    return {"action": "decline"}


async def _sends_defaults(server: str, ctx: ToolContext) -> bool:
    """Ask whether a form that was left open is sent with its defaults, or not at all."""
    options = (QuestionOption(_SENT, "send the defaults"), QuestionOption(_REFUSED, "cancel"))
    (answer,) = await ctx.ask([UserQuestion(f"Send the defaults of this form to the MCP server `{server}`?", options)])
    return answer.chosen == (_SENT,)


async def _open(ask: Mapping[str, Any], server: str, ctx: ToolContext) -> Mapping[str, Any]:
    address, host = ask["address"], _host(ask["address"])
    if not host:
        return {"action": "decline"}
    text = f"The MCP server `{server}` asks you to open {address} of {host} in a browser: {shortened(ask['message'])}"
    options = (QuestionOption(_OPENED, "I have opened it"), QuestionOption(_REFUSED, "I do not want to"))
    (answer,) = await ctx.ask([UserQuestion(text, options)])
    return {"action": "accept" if answer.chosen == (_OPENED,) else "decline"}


def _host(address: str) -> str:
    """Return the host of an address that a browser shows as it is; nothing for any other."""
    if len(address) > _LONGEST_ADDRESS or not _PLAIN.match(address):
        return ""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return "" if "@" in parts.netloc else parts.hostname or ""


async def _sample(ask: Mapping[str, Any], settings: ServerConfig, ctx: ToolContext) -> Mapping[str, Any]:
    model = settings.sampling or ""
    request = request_of(ask["sample"], model)
    found = await ctx.dispatch("llm.generate", request, uses=[f"llm:model={model}"])
    text = "".join(part["text"] for part in found["content"] if part["type"] == "text")
    return {"action": "accept", "content": {"text": text, "model": model}}
