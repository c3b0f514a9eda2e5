"""The strategy `summary`: a model summarizes the older messages."""

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

_DIVIDER = "\n\n---\n\nThe beginning of the current task:\n\n"


async def summarize(event: Compaction, config: Config, model: str, ctx: PluginContext) -> Compacted:
    """Summarize the older messages, and update an earlier summary.

    If the kept messages begin within a run, the beginning of that run is summarized by a separate, concurrent call.

    Args:
        event: the messages to summarize.
        config: the plugin's configuration.
        model: ``provider:model``.
        ctx: dispatches the model calls.

    Raises:
        OpError: if the model call fails.
        SummaryUnusable: if the summary is empty or no shorter than the messages.
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
        raise SummaryUnusable(model, f"its {len(summary):,} characters replace only {replaced:,}")
    return Compacted(with_file_lists(summary, event.read_files, event.modified_files))
