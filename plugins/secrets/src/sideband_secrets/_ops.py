"""The ops of the family `secrets`."""

from __future__ import annotations

from collections.abc import Mapping

from sideband.ops import Level, OpContext, OpDenied, op

from ._backends import Step, StoredSecret, Summary
from ._errors import SecretBinary, SecretMissing, SecretUnrotated
from ._models import (
    Rekeyed,
    SecretInfo,
    SecretList,
    SecretListParams,
    SecretNameParams,
    SecretReadParams,
    SecretRekeyParams,
    SecretRotateParams,
    SecretSetParams,
)
from ._preview import preview_delete, preview_rekey, preview_rollback, preview_rotate, preview_set
from ._scope import SecretsScope
from ._state import secrets_of
from ._undo import plan_undo, reconcile_change, reconcile_delete

_MODES = ("use", "reveal", "write")


def _writing(params: SecretSetParams | SecretRotateParams | SecretNameParams) -> SecretsScope:
    return SecretsScope(name=params.name, mode="write")


def _revealing(params: SecretReadParams) -> SecretsScope:
    return SecretsScope(name=params.name, mode="reveal")


def _rekeying(params: SecretRekeyParams) -> SecretsScope:  # noqa: ARG001  it concerns all secrets
    return SecretsScope(mode="rekey")


@op(
    "secrets.set",
    requires="secrets",
    scope=_writing,
    level=Level.CONTROLLED,
    idempotent=True,
    record=("name", "origins"),
    preview=preview_set,
    reconcile=reconcile_change,
    undo=plan_undo,
)
async def set_secret(params: SecretSetParams, ctx: OpContext) -> SecretInfo:
    """Store a secret, in the place of one of the same name. Its value is recorded nowhere else.

    Args:
        params: `value` is text or bytes, up to 64 KiB; `origins` are the only places it may be sent to
            (`https://api.github.com`, scheme, host and port); `headers` says how it is sent, with `{value}` or
            `{base64}` where the value goes (`{"Authorization": "Basic {base64}"}`), else the op that sends it decides.
        ctx: the dispatch.

    Returns:
        The secret without its value.

    Raises:
        EgressRefused: a skill or a model wants to store a value that it was shown, for other origins than its own.
        SecretReadOnly: another source has a secret of that name.
        SecretsError: it could not be stored; what was there before still is.

    Example:
        ``{"name": "github", "value": "…", "origins": ["https://api.github.com"]}``
    """
    value = _raw(params.value)
    _check_spread(ctx, params.origins, {"value": value, **params.headers})
    secret = StoredSecret(
        name=params.name,
        value=value,
        text=isinstance(params.value, str),
        origins=tuple(dict.fromkeys(params.origins)),
        headers=tuple(params.headers.items()),
    )
    ctx.protect(value, params.name, origins=secret.origins)
    return await _change(params.name, ctx, secret.successor)


@op(
    "secrets.rotate",
    requires="secrets",
    scope=_writing,
    level=Level.CONTROLLED,
    idempotent=False,
    record=("name",),
    preview=preview_rotate,
    reconcile=reconcile_change,
    undo=plan_undo,
)
async def rotate_secret(params: SecretRotateParams, ctx: OpContext) -> SecretInfo:
    """Give a secret a new value, with the same origins and headers.

    The old value can be had back with `secrets.rollback` for the `grace` of `[plugins.secrets]`, and is kept out of
    everything like the new one.

    Args:
        params: `value` is text or bytes, up to 64 KiB.
        ctx: the dispatch.

    Returns:
        The secret without its value.

    Raises:
        SecretMissing: there is none of that name.
        EgressRefused: a skill or a model wants to store a value that it was shown, for other origins than its own.
        SecretReadOnly: it comes from another source.
        SecretsError: it could not be stored; what was there before still is.
    """
    secrets, value = secrets_of(ctx), _raw(params.value)

    def rotate(before: StoredSecret | None) -> StoredSecret:
        if before is None:
            raise SecretMissing(params.name)
        _check_spread(ctx, before.origins, {"value": value})
        return before.rotated(value, text=isinstance(params.value, str), grace=secrets.config.grace)

    return await _change(params.name, ctx, rotate)


@op(
    "secrets.rollback",
    requires="secrets",
    scope=_writing,
    level=Level.CONTROLLED,
    idempotent=False,
    record=("name",),
    preview=preview_rollback,
    reconcile=reconcile_change,
    undo=plan_undo,
)
async def roll_back_secret(params: SecretNameParams, ctx: OpContext) -> SecretInfo:
    """Give a secret the value again that it had before it was rotated. The newer value is forgotten.

    Args:
        params: its `name`.
        ctx: the dispatch.

    Returns:
        The secret without its value.

    Raises:
        SecretMissing: there is none of that name.
        SecretUnrotated: it was not rotated, or the time is over for which the old value is kept.
        SecretReadOnly: it comes from another source.
        SecretsError: it could not be stored; what was there before still is.
    """

    def roll_back(before: StoredSecret | None) -> StoredSecret:
        if before is None:
            raise SecretMissing(params.name)
        if (after := before.rolled_back()) is None:
            raise SecretUnrotated(params.name)
        return after

    return await _change(params.name, ctx, roll_back)


@op("secrets.list", requires="secrets", level=Level.MONITORED)
async def list_secrets(params: SecretListParams, ctx: OpContext) -> SecretList:  # noqa: ARG001  every handler takes both
    """List the secrets that the caller has any right to: names, origins and times, never values.

    Args:
        params: none.
        ctx: the dispatch.

    Returns:
        The secrets by name, where own ones are kept, and what is wrong with other sources.

    Raises:
        SecretsError: the own store can't be used.
    """
    backend, found, problems = await secrets_of(ctx).summaries(lambda name: _may_know(ctx, name), ctx)
    items = [_info(source, summary) for source, summary in found]
    return SecretList(items=items, backend=backend, problems=problems)


@op(
    "secrets.delete",
    requires="secrets",
    scope=_writing,
    level=Level.CONTROLLED,
    record=("name",),
    preview=preview_delete,
    reconcile=reconcile_delete,
    undo=plan_undo,
)
async def delete_secret(params: SecretNameParams, ctx: OpContext) -> None:
    """Remove a secret, and the value that it had before.

    Args:
        params: its `name`.
        ctx: the dispatch.

    Raises:
        SecretMissing: there is none of that name.
        SecretReadOnly: it comes from another source.
        SecretsError: the backend can't be used.
    """
    before, _ = await secrets_of(ctx).change(params.name, lambda _: None, ctx)
    if before is None:
        raise SecretMissing(params.name)


@op("secrets.read", requires="secrets", scope=_revealing, level=Level.MONITORED, record=("name",), reveals=True)
async def read_secret(params: SecretReadParams, ctx: OpContext) -> str:
    """Hand out the value of a secret that is text. The grant must say `mode=reveal`.

    It may be sent to the origins of the secret, and nowhere else.

    Args:
        params: its `name`; `previous` for the value that it had before it was rotated.
        ctx: the dispatch.

    Returns:
        The value.

    Raises:
        SecretMissing: there is none of that name.
        SecretBinary: it was stored as bytes.
        SecretUnrotated: there is no value before this one.
    """
    value, text = await _value(params, ctx)
    if not text:
        raise SecretBinary(params.name)
    return value.decode()


@op("secrets.read_binary", requires="secrets", scope=_revealing, level=Level.MONITORED, record=("name",), reveals=True)
async def read_binary_secret(params: SecretReadParams, ctx: OpContext) -> bytes:
    """Hand out the value of a secret as bytes (text as UTF-8). The grant must say `mode=reveal`.

    Args:
        params: its `name`; `previous` for the value that it had before it was rotated.
        ctx: the dispatch.

    Returns:
        The value.

    Raises:
        SecretMissing: there is none of that name.
        SecretUnrotated: there is no value before this one.
    """
    return (await _value(params, ctx))[0]


@op(
    "secrets.rekey",
    requires="secrets",
    scope=_rekeying,
    level=Level.RESTRICTED,
    record=("to", "key_file"),
    preview=preview_rekey,
    undo=plan_undo,
)
async def rekey_secrets(params: SecretRekeyParams, ctx: OpContext) -> Rekeyed:
    """Seal the encrypted store with a new key. The old one no longer opens it, and is removed when that is durable.

    Args:
        params: `to` is `file` (a new random key) or `passphrase` (which is then given); `key_file` is where the new
            key file is put, by default in the place of the old one.
        ctx: the dispatch.

    Returns:
        What opens the store now.

    Raises:
        SecretsRekeyRefused: secrets are kept in a keyring, or the key file may be another store's too.
        SecretsError: the store can't be opened or written; it is opened by what opened it before.
    """
    if params.passphrase is not None:
        ctx.protect(params.passphrase, "passphrase")
    left = await secrets_of(ctx).rekey(params, ctx)
    return Rekeyed(opened_by=params.to, left=None if left is None else str(left))


async def _change(name: str, ctx: OpContext, step: Step) -> SecretInfo:
    secrets = secrets_of(ctx)
    _, after = await secrets.change(name, step, ctx)
    assert after is not None  # noqa: S101  each step makes a secret or raises
    return _info(await secrets.own_name(ctx), after.summary)


async def _value(params: SecretReadParams, ctx: OpContext) -> tuple[bytes, bool]:
    stored = await secrets_of(ctx).read(params.name, ctx)
    if not params.previous:
        return stored.value, stored.text
    if (before := stored.rolled_back()) is None:
        raise SecretUnrotated(params.name)
    return before.value, before.text


def _check_spread(ctx: OpContext, origins: tuple[str, ...], parts: Mapping[str, str | bytes]) -> None:
    """Who was shown a value could store it as a secret of its own that may go elsewhere, and then send it there."""
    if ctx.origin.skill is None and ctx.origin.tool is None and ctx.origin.session is None:
        return  # a person
    for origin in origins:
        ctx.check_egress(origin, parts)


def _raw(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _may_know(ctx: OpContext, name: str) -> bool:
    for mode in _MODES:
        try:
            ctx.require(SecretsScope(name=name, mode=mode))
        except OpDenied:
            continue
        return True
    return False


def _info(source: str, summary: Summary) -> SecretInfo:
    return SecretInfo(
        name=summary.name,
        origins=list(summary.origins),
        kind="text" if summary.text else "binary",
        updated=summary.updated,
        version=summary.version,
        source=source,
        previous_until=summary.previous_until,
    )
