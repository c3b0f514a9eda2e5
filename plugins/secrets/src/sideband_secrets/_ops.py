"""The ops of the family `secrets`."""

from __future__ import annotations

from collections.abc import Mapping

from sideband.ops import Level, OpContext, OpDenied, op

from ._backends import Step, StoredSecret, Summary
from ._config import Config
from ._errors import SecretBinary, SecretChanged, SecretMissing, SecretUnrotated
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


def _rekeying(params: SecretRekeyParams) -> SecretsScope:  # noqa: ARG001  applies to all secrets
    return SecretsScope(mode="rekey")


def _leaves_machine(params: object, config: Config) -> bool:  # noqa: ARG001  each asks for a name, or for all
    """Return whether a server may be asked for a secret."""
    return "vault" in config.sources


@op(
    "secrets.set",
    requires="secrets",
    scope=_writing,
    level=Level.CONTROLLED,
    needs={"mode": ("write",)},
    idempotent=True,
    record=("name", "origins"),
    preview=preview_set,
    reconcile=reconcile_change,
    undo=plan_undo,
    egress=_leaves_machine,
)
async def set_secret(params: SecretSetParams, ctx: OpContext) -> SecretInfo:
    """Store a secret, replacing one of the same name. Its value is not recorded anywhere else.

    Args:
        params: `value` is text or bytes, up to 64 KiB; `origins` are the only places that it may be sent to
            (`https://api.github.com`, scheme, host and port); `headers` sets how it is sent, with `{value}` or
            `{base64}` as placeholder (`{"Authorization": "Basic {base64}"}`); by default the sending op decides.
        ctx: the op's context.

    Returns:
        The secret without its value.

    Raises:
        EgressRefused: if a skill or a model tries to store a value that it has seen, for origins other than its own.
        SecretReadOnly: if another source has a secret of that name.
        SecretsError: if it could not be stored; the previous secret is unchanged.

    Example:
        ``{"name": "github", "value": "…", "origins": ["https://api.github.com"]}``
    """
    value = _raw(params.value)
    _check_rebinding(ctx, params.origins, {"value": value, **params.headers})
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
    needs={"mode": ("write",)},
    idempotent=False,
    record=("name",),
    preview=preview_rotate,
    reconcile=reconcile_change,
    undo=plan_undo,
    egress=_leaves_machine,
)
async def rotate_secret(params: SecretRotateParams, ctx: OpContext) -> SecretInfo:
    """Replace the value of a secret, keeping its origins and headers.

    The previous value can be restored with `secrets.rollback` for the `grace` of `[plugins.secrets]`, and is redacted
    like the current one.

    Args:
        params: `value` is text or bytes, up to 64 KiB.
        ctx: the op's context.

    Returns:
        The secret without its value.

    Raises:
        SecretMissing: if the secret does not exist.
        EgressRefused: if a skill or a model tries to store a value that it has seen, for origins other than its own.
        SecretReadOnly: if it comes from another source.
        SecretsError: if it could not be stored; the previous value is unchanged.
    """
    secrets, value = secrets_of(ctx), _raw(params.value)

    def rotate(before: StoredSecret | None) -> StoredSecret:
        if before is None:
            raise SecretMissing(params.name, changing=True)
        _check_rebinding(ctx, before.origins, {"value": value})
        return before.rotated(value, text=isinstance(params.value, str), grace=secrets.config.grace)

    return await _change(params.name, ctx, rotate)


@op(
    "secrets.rollback",
    requires="secrets",
    scope=_writing,
    level=Level.CONTROLLED,
    needs={"mode": ("write",)},
    idempotent=False,
    record=("name",),
    preview=preview_rollback,
    reconcile=reconcile_change,
    undo=plan_undo,
    egress=_leaves_machine,
)
async def roll_back_secret(params: SecretNameParams, ctx: OpContext) -> SecretInfo:
    """Restore the value that a secret had before its last rotation. The newer value is discarded.

    Args:
        params: the `name` of the secret; `stored_by`, the effect that must have stored its current value.
        ctx: the op's context.

    Returns:
        The secret without its value.

    Raises:
        SecretMissing: if the secret does not exist.
        SecretUnrotated: if no previous value is kept.
        SecretChanged: if another effect stored the current value.
        SecretReadOnly: if it comes from another source.
        SecretsError: if it could not be stored; the current value is unchanged.
    """

    def roll_back(before: StoredSecret | None) -> StoredSecret:
        if before is None:
            raise SecretMissing(params.name, changing=True)
        _check_stored_by(before, params)
        if (after := before.rolled_back()) is None:
            raise SecretUnrotated(params.name)
        return after

    return await _change(params.name, ctx, roll_back)


@op("secrets.list", requires="secrets", level=Level.MONITORED, egress=_leaves_machine)
async def list_secrets(params: SecretListParams, ctx: OpContext) -> SecretList:  # noqa: ARG001  required
    """List the secrets that the caller has access to: names, origins and times, never values.

    Args:
        params: none.
        ctx: the op's context.

    Returns:
        The secrets by name, the backend of the local store, and the errors of other sources.

    Raises:
        SecretsError: if the local store is unavailable.
    """
    backend, found, problems = await secrets_of(ctx).summaries(lambda name: _may_know(ctx, name), ctx)
    items = [_info(source, summary) for source, summary in found]
    return SecretList(items=items, backend=backend, problems=problems)


@op(
    "secrets.delete",
    requires="secrets",
    scope=_writing,
    level=Level.CONTROLLED,
    needs={"mode": ("write",)},
    record=("name",),
    preview=preview_delete,
    reconcile=reconcile_delete,
    undo=plan_undo,
    egress=_leaves_machine,
)
async def delete_secret(params: SecretNameParams, ctx: OpContext) -> None:
    """Delete a secret, including its previous value.

    Args:
        params: the `name` of the secret; `stored_by`, the effect that must have stored its current value.
        ctx: the op's context.

    Raises:
        SecretMissing: if the secret does not exist.
        SecretReadOnly: if it comes from another source.
        SecretsError: if the backend is unavailable.
    """

    def delete(before: StoredSecret | None) -> None:
        if before is not None:
            _check_stored_by(before, params)

    before, _ = await secrets_of(ctx).change(params.name, delete, ctx)
    if before is None:
        raise SecretMissing(params.name, changing=True)


@op(
    "secrets.read",
    requires="secrets",
    scope=_revealing,
    level=Level.CONTROLLED,
    needs={"mode": ("reveal",)},
    idempotent=True,
    record=("name",),
    reveals=True,
    egress=_leaves_machine,
)
async def read_secret(params: SecretReadParams, ctx: OpContext) -> str:
    """Return the value of a text secret. Requires a grant with `mode=reveal`.

    The value can only be sent to the origins of the secret.

    Args:
        params: the `name` of the secret; `previous` selects the value before its last rotation.
        ctx: the op's context.

    Returns:
        The value.

    Raises:
        SecretMissing: if the secret does not exist.
        SecretBinary: if the value is bytes.
        SecretUnrotated: if no previous value is kept.
    """
    value, text = await _value(params, ctx)
    if not text:
        raise SecretBinary(params.name)
    return value.decode()


@op(
    "secrets.read_binary",
    requires="secrets",
    scope=_revealing,
    level=Level.CONTROLLED,
    needs={"mode": ("reveal",)},
    idempotent=True,
    record=("name",),
    reveals=True,
    egress=_leaves_machine,
)
async def read_binary_secret(params: SecretReadParams, ctx: OpContext) -> bytes:
    """Return the value of a secret as bytes (text as UTF-8). Requires a grant with `mode=reveal`.

    Args:
        params: the `name` of the secret; `previous` selects the value before its last rotation.
        ctx: the op's context.

    Returns:
        The value.

    Raises:
        SecretMissing: if the secret does not exist.
        SecretUnrotated: if no previous value is kept.
    """
    return (await _value(params, ctx))[0]


@op(
    "secrets.rekey",
    requires="secrets",
    scope=_rekeying,
    level=Level.RESTRICTED,
    needs={"mode": ("rekey",)},
    record=("to", "key_file"),
    preview=preview_rekey,
    undo=plan_undo,
    egress=False,
)
async def rekey_secrets(params: SecretRekeyParams, ctx: OpContext) -> Rekeyed:
    """Re-encrypt the encrypted store with a new key. The old key is removed once that is durable.

    Args:
        params: `to` is `file` (a new random key) or `passphrase` (which must then be given); `key_file` is the path of
            the new key file, by default that of the old one.
        ctx: the op's context.

    Returns:
        The kind of the new key, and the old key file if it was kept.

    Raises:
        SecretsRekeyRefused: if secrets are not kept in the encrypted store, or other stores may need the key file.
        SecretsError: if the store cannot be opened or written; the old key still opens it.
    """
    if params.passphrase is not None:
        ctx.protect(params.passphrase, "passphrase")
    left = await secrets_of(ctx).rekey(params, ctx)
    return Rekeyed(opened_by=params.to, left=None if left is None else str(left))


async def _change(name: str, ctx: OpContext, step: Step) -> SecretInfo:
    secrets = secrets_of(ctx)
    _, after = await secrets.change(name, step, ctx)
    assert after is not None  # noqa: S101  each step returns a secret or raises
    return _info(await secrets.own_name(ctx), after.summary)


async def _value(params: SecretReadParams, ctx: OpContext) -> tuple[bytes, bool]:
    stored = await secrets_of(ctx).read(params.name, ctx)
    if not params.previous:
        return stored.value, stored.text
    if (before := stored.rolled_back()) is None:
        raise SecretUnrotated(params.name)
    return before.value, before.text


def _check_rebinding(ctx: OpContext, origins: tuple[str, ...], parts: Mapping[str, str | bytes]) -> None:
    """Check that a skill or model does not rebind a value that it has seen to other origins, to send it there."""
    if ctx.origin.skill is None and ctx.origin.tool is None and ctx.origin.session is None:
        return  # a person
    for origin in origins:
        ctx.check_egress(origin, parts)


def _check_stored_by(before: StoredSecret, params: SecretNameParams) -> None:
    """Check that undo reverts the change that it was planned for, and no later one."""
    if params.stored_by not in {None, before.effect}:
        raise SecretChanged(params.name)


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
