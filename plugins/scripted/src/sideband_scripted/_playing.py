"""Play one turn as a stream of events."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import AsyncGenerator

import anyio
import anyio.lowlevel
from sideband.messages import AssistantMessage, Message, TextPart, ThinkingPart, ToolCallPart, Usage, to_data
from sideband.providers import (
    Finished,
    ModelRequest,
    StreamBroken,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)

from ._turns import Broken, Hang, ScriptedTurn, Turn

_DELTAS = 8
_CHARACTERS_PER_TOKEN = 4


async def play(provider: str, turn: ScriptedTurn, request: ModelRequest) -> AsyncGenerator[StreamEvent]:
    """Yield the events of a turn. Raises the exception that the turn specifies."""
    if callable(turn):
        made = turn(request)
        turn = await made if inspect.isawaitable(made) else made
    if isinstance(turn, Exception):
        raise turn
    message = _message(turn.turn if isinstance(turn, Broken | Hang) else turn, request)
    deltas = _deltas(message)
    for delta in deltas[: turn.after] if isinstance(turn, Broken | Hang) else deltas:
        await anyio.lowlevel.checkpoint()
        yield delta
    if isinstance(turn, Broken):
        raise StreamBroken(provider, "the stream broke off, as scripted", retryable=True)
    if isinstance(turn, Hang):
        turn.reached.set()
        await anyio.sleep_forever()
    yield Finished(message=message)


def _message(turn: Turn | str, request: ModelRequest) -> AssistantMessage:
    turn = Turn(text=turn) if isinstance(turn, str) else turn
    thinking = [ThinkingPart(text=turn.thinking)] if turn.thinking else []
    text = [TextPart(text=turn.text)] if turn.text else []
    calls = [
        call if isinstance(call, ToolCallPart) else _call(call[0], call[1], *call[2:], number=number, request=request)
        for number, call in enumerate(turn.tool_calls)
    ]
    message = AssistantMessage(content=(*thinking, *text, *calls), stop=turn.stop_reason)
    usage = turn.usage or Usage(input=_estimated_tokens(request), output=_tokens(len(_written(message))))
    return message.model_copy(update={"usage": usage})


def _call(
    name: str, arguments: dict[str, object], call_id: str | None = None, *, number: int, request: ModelRequest
) -> ToolCallPart:
    return ToolCallPart.model_validate(
        {"id": call_id or _new_id(request, number), "name": name, "arguments": arguments}
    )


def _new_id(request: ModelRequest, number: int) -> str:
    """Derive a call id from the history, so that a resumed process answers as the interrupted one would have."""
    last = json.dumps(to_data(request.messages[-1]), sort_keys=True) if request.messages else ""
    seen = f"{len(request.messages)}:{number}:{last}"
    return f"call_{hashlib.sha256(seen.encode()).hexdigest()[:16]}"


def _deltas(message: AssistantMessage) -> list[StreamEvent]:
    deltas: list[StreamEvent] = []
    calls = 0
    for part in message.content:
        if isinstance(part, ThinkingPart):
            deltas += [ThinkingDelta(text=piece) for piece in _pieces(part.text)]
        elif isinstance(part, TextPart):
            deltas += [TextDelta(text=piece) for piece in _pieces(part.text)]
        else:
            deltas.append(ToolCallDelta(index=calls, name=part.name))
            pieces = _pieces(json.dumps(part.arguments, ensure_ascii=False))
            deltas += [ToolCallDelta(index=calls, arguments=piece) for piece in pieces]
            calls += 1
    return deltas


def _pieces(text: str) -> list[str]:
    size = max(4, -(-len(text) // _DELTAS))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _estimated_tokens(request: ModelRequest) -> int:
    """Estimate the tokens of a request."""
    texts = [request.system, *(_written(message) for message in request.messages)]
    texts += [tool.model_dump_json() for tool in request.tools]
    return _tokens(sum(map(len, texts)))


def _written(message: Message) -> str:
    return "".join(
        f"{part.name}{json.dumps(part.arguments)}" if isinstance(part, ToolCallPart) else getattr(part, "text", "")
        for part in message.content
    )


def _tokens(characters: int) -> int:
    return max(1, characters // _CHARACTERS_PER_TOKEN)
