"""What changes of secrets would do, as a sentence."""

from __future__ import annotations

from sideband.ops import OpContext

from ._backends import StoredSecret
from ._models import SecretNameParams, SecretRekeyParams, SecretRotateParams, SecretSetParams
from ._state import secrets_of


async def preview_set(params: SecretSetParams, ctx: OpContext) -> str:
    """What storing would do."""
    before = await secrets_of(ctx).read_own(params.name, ctx)
    kind = "text" if isinstance(params.value, str) else "bytes"
    bound = ", ".join(params.origins) or "no origin"
    replaced = "" if before is None else f" in the place of {_described(before)}, which is forgotten"
    return f"would store {kind} as `{params.name}`, bound to {bound}{replaced}"


async def preview_rotate(params: SecretRotateParams, ctx: OpContext) -> str:
    """What a rotation would do."""
    before = await secrets_of(ctx).read_own(params.name, ctx)
    if before is None:
        return f"would fail: there is no own secret `{params.name}`"
    return f"would give {_described(before)} a new value"


async def preview_rollback(params: SecretNameParams, ctx: OpContext) -> str:
    """What having the value back would do."""
    before = await secrets_of(ctx).read_own(params.name, ctx)
    if before is None or before.rolled_back() is None:
        return f"would fail: no earlier value of `{params.name}` is kept"
    return f"would give {_described(before)} the value again that it had before; the newer one is forgotten"


async def preview_delete(params: SecretNameParams, ctx: OpContext) -> str:
    """What a deletion would do."""
    before = await secrets_of(ctx).read_own(params.name, ctx)
    return (
        f"would fail: there is no own secret `{params.name}`"
        if before is None
        else f"would forget {_described(before)}"
    )


async def preview_rekey(params: SecretRekeyParams, ctx: OpContext) -> str:
    """What a new key would do."""
    own = await secrets_of(ctx).own_name(ctx)
    return f"would seal the store of secrets (`{own}`) with a new {params.to}; the old key no longer opens it"


def _described(stored: StoredSecret) -> str:
    bound = ", ".join(stored.origins) or "no origin"
    return f"`{stored.name}` (bound to {bound}, stored {stored.updated})"
