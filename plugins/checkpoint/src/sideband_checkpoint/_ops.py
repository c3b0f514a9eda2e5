"""The ops: save, load and clear a checkpoint.

Each principal has its own checkpoints of each skill. No parameter names a skill, so none reads those of another.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any
from urllib.parse import quote

from sideband.ops import Level, OpContext, op

from ._config import Config
from ._errors import CheckpointError, CheckpointTooLarge, TooManyCheckpoints
from ._models import CheckpointParams, CheckpointSaveParams
from ._scope import CheckpointScope


def _scope_of(params: CheckpointParams | CheckpointSaveParams) -> CheckpointScope:
    return CheckpointScope(name=params.name)


_op = partial(
    op,
    requires="checkpoint",
    scope=_scope_of,
    level=Level.MONITORED,
    idempotent=True,
    record=["name"],
    egress=False,
)


@_op("checkpoint.save")
async def save(params: CheckpointSaveParams, ctx: OpContext) -> None:
    """Save data under a name, instead of what was saved before. It is on disk when this returns.

    Data that contains a known secret is refused.
    """
    config: Config = ctx.config
    text = _as_json(params.data)
    size = len(text.encode())
    if size > config.size:
        raise CheckpointTooLarge(size, config.size)
    ctx.check_egress(None, {"checkpoint": text})
    key = _folder(ctx) + params.name
    async with ctx.store.transaction() as stored:
        if await stored.get(key) is None and len(await stored.keys(_folder(ctx))) >= config.number:
            raise TooManyCheckpoints(config.number)
        await stored.put(key, {"data": json.loads(text)})


@_op("checkpoint.load", foreign_names=True)
async def load(params: CheckpointParams, ctx: OpContext) -> Any:
    """Return what was saved under a name, or ``None`` if nothing was."""
    found = await ctx.store.get(_folder(ctx) + params.name)
    return None if found is None else found.value["data"]


@_op("checkpoint.clear")
async def clear(params: CheckpointParams, ctx: OpContext) -> bool:
    """Remove what was saved under a name, and return whether something was."""
    return await ctx.store.delete(_folder(ctx) + params.name)


OPS = (save, load, clear)


def _as_json(data: Any) -> str:
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"the data is not JSON: {error}", hint="save texts, numbers, lists and objects") from None
    return text


def _folder(ctx: OpContext) -> str:
    """Return how the keys of the caller's checkpoints begin."""
    return f"{quote(ctx.principal, safe='')}/{ctx.origin.skill or ''}/"
