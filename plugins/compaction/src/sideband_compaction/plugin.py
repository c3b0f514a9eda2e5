"""The hook `compaction`: registration."""

from __future__ import annotations

from sideband.hooks import Cancel, Compacted, Compaction, hookimpl
from sideband.plugins import AgentContext

from ._config import Config

__all__ = ["Config", "compaction"]


@hookimpl
async def compaction(event: Compaction, ctx: AgentContext) -> Cancel | Compacted:
    """Compact the conversation with the configured strategy."""
    # strategies are imported at the first compaction, to keep the start of the host fast
    config: Config = ctx.config
    if config.strategy == "none":
        return Cancel('`[plugins.compaction] strategy = "none"` disables compaction')
    if config.strategy == "window":
        from sideband_agent import sliding_window  # noqa: PLC0415

        return sliding_window(event)
    from ._summary import summarize  # noqa: PLC0415

    return await summarize(event, config, config.model or ctx.model, ctx)
