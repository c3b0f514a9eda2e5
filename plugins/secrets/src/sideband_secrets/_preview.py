"""Previews of changes of secrets."""

from __future__ import annotations

from sideband.ops import OpContext

from ._backends import StoredSecret
from ._models import SecretNameParams, SecretRekeyParams, SecretRotateParams, SecretSetParams
from ._state import secrets_of


async def preview_set(params: SecretSetParams, ctx: OpContext) -> str:
    """Describe what `secrets.set` would do."""
    before = await secrets_of(ctx).read_own(params.name, ctx)
    kind = "text" if isinstance(params.value, str) else "bytes"
    bound = ", ".join(params.origins) or "no origin"
    replaced = "" if before is None else f", permanently replacing {_described(before)}"
    return f"would store {kind} as `{params.name}`, bound to {bound}{replaced}"


async def preview_rotate(params: SecretRotateParams, ctx: OpContext) -> str:
    """Describe what `secrets.rotate` would do."""
    before = await secrets_of(ctx).read_own(params.name, ctx)
    if before is None:
        return f"would fail: secret `{params.name}` does not exist in the local store"
    return f"would replace the value of {_described(before)}"


async def preview_rollback(params: SecretNameParams, ctx: OpContext) -> str:
    """Describe what `secrets.rollback` would do."""
    before = await secrets_of(ctx).read_own(params.name, ctx)
    if before is None or before.rolled_back() is None:
        return f"would fail: no previous value of `{params.name}` is kept"
    return f"would restore the previous value of {_described(before)} and discard the current one"


async def preview_delete(params: SecretNameParams, ctx: OpContext) -> str:
    """Describe what `secrets.delete` would do."""
    before = await secrets_of(ctx).read_own(params.name, ctx)
    return (
        f"would fail: secret `{params.name}` does not exist in the local store"
        if before is None
        else f"would delete {_described(before)}"
    )


async def preview_rekey(params: SecretRekeyParams, ctx: OpContext) -> str:
    """Describe what `secrets.rekey` would do."""
    own = await secrets_of(ctx).own_name(ctx)
    return f"would encrypt the secrets store (`{own}`) with a new {params.to}; the old key would no longer open it"


def _described(stored: StoredSecret) -> str:
    bound = ", ".join(stored.origins) or "no origin"
    return f"`{stored.name}` (bound to {bound}, stored {stored.updated})"
