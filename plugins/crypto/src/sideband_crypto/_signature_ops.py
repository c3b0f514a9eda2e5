"""The ops `crypto.sign`, `crypto.verify`, `crypto.generate_key` and `crypto.create_key`."""

from __future__ import annotations

from sideband.ops import Level, OpContext, op

from ._generation import generate, uses_of
from ._keys import private_key, public_key
from ._limits import check_size
from ._material import audience_of, key_bytes
from ._models import CreatedKey, CreateKeyParams, GeneratedKey, GenerateKeyParams, SignParams, VerifyParams
from ._scope import NO_SECRET, CryptoScope
from ._signatures import check_choices, fits, signed
from ._work import Work

__all__ = ["create_key", "generate_key", "sign_data", "verify_signature"]


@op(
    "crypto.sign",
    requires="crypto",
    scope=lambda params: CryptoScope(op="sign", key=params.handle or NO_SECRET),
    level=Level.SAFE,
    record=("algorithm", "digest", "form", "handle"),
)
async def sign_data(params: SignParams, ctx: OpContext) -> bytes:
    """Sign some data.

    Args:
        params: `data` (not its digest); `algorithm` is `ed25519`, `ecdsa` (P-256 and P-384), `rsa-pss` (the salt is as
            long as the digest) or `rsa-pkcs1v15`; `digest` is `sha256`, `sha384` or `sha512`, unless told that which
            fits the key, and none for `ed25519`; `form="raw"` makes an ECDSA signature of two numbers, as JWT has it,
            instead of DER; `key` is the private key, or `handle` names a secret that is bound to `op://crypto.sign`.
        ctx: the dispatch.

    Returns:
        The signature.

    Raises:
        CryptoKey: it can't be read, is of another kind, or too weak.
        CryptoValue: a digest or form that the algorithm does not have.
        CryptoTooLarge: the data are longer than `max_bytes`.

    Example:
        ``{"data": "release 1.0", "algorithm": "ed25519", "handle": "release"}``
    """
    work: Work = ctx.state
    check_size(work.config, params.data)
    check_choices(params)
    raw = await key_bytes(ctx, params.key, params.handle)
    return await work.run(ctx, lambda: signed(private_key(raw, params.algorithm, params.handle), params))


@op(
    "crypto.verify",
    requires="crypto",
    scope=lambda params: CryptoScope(op="verify", key=params.handle or NO_SECRET),
    level=Level.SAFE,
    record=("algorithm", "digest", "form", "handle"),
)
async def verify_signature(params: VerifyParams, ctx: OpContext) -> bool:
    """Check a signature.

    Args:
        params: `signature`; `key` is the public key (PEM, DER; for `ed25519` also 32 bytes), or `handle` names a
            secret that is bound to `op://crypto.verify`; the others as for `crypto.sign`. Of a private key, the public
            one is used.
        ctx: the dispatch.

    Returns:
        Whether it fits. One that is malformed does not.

    Raises:
        CryptoKey: it can't be read, is of another kind, too weak, or fits signatures of any text.
        CryptoValue: a digest or form that the algorithm does not have.
        CryptoTooLarge: the data are longer than `max_bytes`.

    Example:
        ``{"data": "release 1.0", "signature": {"__bytes__": "…"}, "algorithm": "ed25519", "key": {"__bytes__": "…"}}``
    """
    work: Work = ctx.state
    check_size(work.config, params.data)
    check_choices(params)
    raw = await key_bytes(ctx, params.key, params.handle)

    def run() -> bool:
        return fits(public_key(raw, params.algorithm, params.handle), params, params.signature)

    return await work.run(ctx, run)


@op(
    "crypto.generate_key",
    requires="crypto",
    scope=lambda _params: CryptoScope(op="generate_key", key=NO_SECRET),
    level=Level.SAFE,
    record=("kind",),
)
async def generate_key(params: GenerateKeyParams, ctx: OpContext) -> GeneratedKey:
    """Make a key and hand it out. `crypto.create_key` makes one that stays in the host.

    Args:
        params: `kind` is `ed25519`, `ecdsa-p256`, `ecdsa-p384`, `rsa-2048`, `rsa-3072`, `rsa-4096`, or `bytes-16` or
            `bytes-32` for AES and HMAC.
        ctx: the dispatch.

    Returns:
        The key (PEM, or plain bytes), and the public key as PEM, if there is one.

    Example:
        ``{"kind": "ed25519"}``
    """
    work: Work = ctx.state
    return await work.run(ctx, lambda: generate(params.kind))


@op(
    "crypto.create_key",
    requires="crypto",
    scope=lambda params: CryptoScope(op="create_key", key=params.handle),
    level=Level.CONTROLLED,
    record=("kind", "handle", "ops"),
)
async def create_key(params: CreateKeyParams, ctx: OpContext) -> CreatedKey:
    """Make a key that nobody sees: it is stored as a secret that only the named ops of this family can use.

    Args:
        params: `kind` as for `crypto.generate_key`; `handle` is the name to store it under (the grant must say
            `secrets:name=NAME,mode=write`); `ops` are the ops that may use it: `["sign", "verify"]`. A secret of that
            name is replaced.
        ctx: the dispatch.

    Returns:
        The name, and the public key as PEM, if there is one.

    Raises:
        CryptoValue: an op that no key of this kind is for.
        OpDenied: the grant does not have the right to store it.

    Example:
        ``{"kind": "ed25519", "handle": "release", "ops": ["sign"]}``
    """
    uses = uses_of(params.kind, params.ops)
    work: Work = ctx.state
    made = await work.run(ctx, lambda: generate(params.kind))
    text = made.key.decode() if made.public is not None else f"hex:{made.key.hex()}"
    origins = [audience_of(f"crypto.{use}") for use in uses]
    ctx.protect(made.key, params.handle, origins=origins)
    await ctx.dispatch("secrets.set", {"name": params.handle, "value": text, "origins": origins})
    return CreatedKey(handle=params.handle, public=made.public)
