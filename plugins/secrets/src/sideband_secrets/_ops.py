"""The ops `secrets.set`, `secrets.list`, `secrets.delete`, `secrets.read` and `secrets.read_binary`."""

from __future__ import annotations

from datetime import UTC, datetime

from sideband.ops import Level, OpContext, OpDenied, op

from ._backends import Stored, Summary
from ._errors import SecretBinary
from ._models import ListParams, NameParams, SecretInfo, SecretList, SecretsScope, SetParams
from ._vault import Vault

__all__ = ["delete_secret", "list_secrets", "read_binary_secret", "read_secret", "set_secret"]

_MODES = ("use", "reveal", "write")


def _writing(params: SetParams | NameParams) -> SecretsScope:
    return SecretsScope(name=params.name, mode="write")


def _revealing(params: NameParams) -> SecretsScope:
    return SecretsScope(name=params.name, mode="reveal")


@op(
    "secrets.set",
    requires="secrets",
    scope=_writing,
    level=Level.CONTROLLED,
    idempotent=True,
    record=("name", "origins"),
)
async def set_secret(params: SetParams, ctx: OpContext) -> SecretInfo:
    """Store a secret, in the place of one of the same name. Its value is recorded nowhere else.

    Args:
        params: `value` is text or bytes, up to 64 KiB; `origins` are the only places it may be sent to
            (`https://api.github.com`, scheme, host and port); `headers` says how it is sent, with `{value}` or
            `{base64}` where the value goes (`{"Authorization": "Basic {base64}"}`), else the op that sends it decides.
        ctx: the dispatch.

    Returns:
        The secret without its value.

    Raises:
        SecretsError: it could not be stored; what was there before still is.

    Example:
        ``{"name": "github", "value": "…", "origins": ["https://api.github.com"]}``
    """
    ctx.protect(params.value, params.name)
    text = isinstance(params.value, str)
    stored = Stored(
        name=params.name,
        value=params.value.encode() if isinstance(params.value, str) else params.value,
        text=text,
        origins=tuple(dict.fromkeys(params.origins)),
        headers=tuple(params.headers.items()),
        updated=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    )
    await _vault(ctx).write(stored, ctx)
    return _info(stored.summary)


@op("secrets.list", requires="secrets", level=Level.MONITORED)
async def list_secrets(params: ListParams, ctx: OpContext) -> SecretList:  # noqa: ARG001  every handler takes both
    """List the secrets that the caller has any right to: names, origins and times, never values.

    Args:
        params: none.
        ctx: the dispatch.

    Returns:
        The secrets by name, and where they are kept.

    Raises:
        SecretsError: the backend can't be used.
    """
    backend, summaries = await _vault(ctx).summaries(ctx)
    return SecretList(items=[_info(one) for one in summaries if _may_know(ctx, one.name)], backend=backend)


@op("secrets.delete", requires="secrets", scope=_writing, level=Level.CONTROLLED, record=("name",))
async def delete_secret(params: NameParams, ctx: OpContext) -> None:
    """Remove a secret.

    Args:
        params: its `name`.
        ctx: the dispatch.

    Raises:
        SecretMissing: there is none of that name.
        SecretsError: the backend can't be used.
    """
    await _vault(ctx).delete(params.name, ctx)


@op("secrets.read", requires="secrets", scope=_revealing, level=Level.MONITORED, record=("name",), reveals=True)
async def read_secret(params: NameParams, ctx: OpContext) -> str:
    """Hand out the value of a secret that is text. The grant must say `mode=reveal`.

    Args:
        params: its `name`.
        ctx: the dispatch.

    Returns:
        The value.

    Raises:
        SecretMissing: there is none of that name.
        SecretBinary: it was stored as bytes.
    """
    stored = await _vault(ctx).read(params.name, ctx)
    if not stored.text:
        raise SecretBinary(params.name)
    return stored.value.decode()


@op("secrets.read_binary", requires="secrets", scope=_revealing, level=Level.MONITORED, record=("name",), reveals=True)
async def read_binary_secret(params: NameParams, ctx: OpContext) -> bytes:
    """Hand out the value of a secret as bytes (text as UTF-8). The grant must say `mode=reveal`.

    Args:
        params: its `name`.
        ctx: the dispatch.

    Returns:
        The value.

    Raises:
        SecretMissing: there is none of that name.
    """
    return (await _vault(ctx).read(params.name, ctx)).value


def _vault(ctx: OpContext) -> Vault:
    vault: Vault = ctx.state
    return vault


def _may_know(ctx: OpContext, name: str) -> bool:
    for mode in _MODES:
        try:
            ctx.require(SecretsScope(name=name, mode=mode))
        except OpDenied:
            continue
        return True
    return False


def _info(summary: Summary) -> SecretInfo:
    return SecretInfo(
        name=summary.name,
        origins=list(summary.origins),
        kind="text" if summary.text else "binary",
        updated=summary.updated,
    )
