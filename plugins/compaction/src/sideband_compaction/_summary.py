"""The strategy `summary`: a model writes what stands for the older messages."""

from __future__ import annotations

from functools import partial

import anyio
from sideband.hooks import Compacted, Compaction
from sideband.messages import parse_messages
from sideband.plugins import PluginContext
from sideband_agent import with_file_lists, without_file_lists

from ._config import Config
from ._errors import SummaryUnusable
from ._record import record, weight
from ._summary_prompts import history_prompt, turn_prompt
from ._writer import Writer

_DIVIDER = "\n\n---\n\nThe beginning of what is being worked on:\n\n"


async def summarise(event: Compaction, config: Config, model: str, ctx: PluginContext) -> Compacted:
    """Replace the older messages by a summary, and update the one that was there before.

    If what is kept begins in the middle of a run, its beginning is summarised by a call of its own, at the same time.

    Args:
        event: what to summarise.
        config: how.
        model: ``provider:model``.
        ctx: makes the model calls.

    Raises:
        OpError: the model can't be asked.
        SummaryUnusable: what it wrote is empty, or no shorter than what it stands for.
    """
    writer = Writer(ctx, model, config.max_tokens)
    history, turn = parse_messages(event.messages), parse_messages(event.turn_prefix)
    previous = without_file_lists(event.previous_summary or "").strip()
    written = {"history": previous, "turn": ""}

    async def write_history() -> None:
        prompt = partial(history_prompt, previous=previous, instructions=event.instructions)
        written["history"] = await writer.write(record(history, config.clip), prompt)

    async def write_turn() -> None:
        prompt = partial(turn_prompt, instructions=event.instructions)
        written["turn"] = await writer.write(record(turn, config.clip), prompt)

    try:
        async with anyio.create_task_group() as group:
            if history:
                group.start_soon(write_history)
            if turn:
                group.start_soon(write_turn)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    summary = _DIVIDER.join(text for text in written.values() if text)
    replaced = weight(history) + weight(turn) + len(previous)
    if len(summary) >= replaced:
        raise SummaryUnusable(model, f"with {len(summary):,} characters it is no shorter than the {replaced:,} before")
    return Compacted(with_file_lists(summary, event.read_files, event.modified_files))
