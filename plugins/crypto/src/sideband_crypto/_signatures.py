"""Signs data and verifies signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sideband.ops import OpContext

from ._digests import library_digest
from ._errors import CryptoValue
from ._key_material import key_bytes
from ._key_reading import private_key, public_key
from ._limits import check_size
from ._models import SignParams, VerifyParams
from ._state import Work

if TYPE_CHECKING:
    from ._key_reading import Private, Public

_CURVE_DIGESTS = {256: "sha256", 384: "sha384"}


async def sign(params: SignParams, ctx: OpContext) -> bytes:
    """Sign data."""
    work: Work = ctx.state
    check_size(work.config, params.data)
    _check_choices(params)
    raw = await key_bytes(ctx, params.key, params.handle)
    return await work.run(ctx, lambda: _signed(private_key(raw, params.algorithm, params.handle), params))


async def verify(params: VerifyParams, ctx: OpContext) -> bool:
    """Verify a signature."""
    work: Work = ctx.state
    check_size(work.config, params.data)
    _check_choices(params)
    raw = await key_bytes(ctx, params.key, params.handle)

    def run() -> bool:
        return _is_valid(public_key(raw, params.algorithm, params.handle), params, params.signature)

    return await work.run(ctx, run)


def _check_choices(params: SignParams) -> None:
    """Check that the algorithm supports the digest and the form.

    Raises:
        CryptoValue: if a digest is given for Ed25519, or a raw form for anything but ECDSA.
    """
    if params.algorithm == "ed25519" and params.digest is not None:
        raise CryptoValue("`ed25519` does not support `digest`", hint="omit `digest`")
    if params.algorithm != "ecdsa" and params.form != "der":
        raise CryptoValue(f"`{params.algorithm}` does not support `form`", hint="omit `form`")


def _signed(key: Private, params: SignParams) -> bytes:
    """Return the signature of the data."""
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    if isinstance(key, ec.EllipticCurvePrivateKey):
        signature = key.sign(params.data, ec.ECDSA(library_digest(_curve_digest(params, key.key_size))))
        return signature if params.form == "der" else _numbers_of(signature, key.key_size)
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(params.data, _padding(params), library_digest(params.digest or "sha256"))
    return key.sign(params.data)


def _is_valid(key: Public, params: SignParams, signature: bytes) -> bool:
    """Return whether the signature is valid. A malformed signature is invalid."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    try:
        if isinstance(key, ec.EllipticCurvePublicKey):
            der = signature if params.form == "der" else _der_of(signature, key.key_size)
            key.verify(der, params.data, ec.ECDSA(library_digest(_curve_digest(params, key.key_size))))
        elif isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, params.data, _padding(params), library_digest(params.digest or "sha256"))
        else:
            key.verify(signature, params.data)
    except (InvalidSignature, ValueError):
        return False
    return True


def _curve_digest(params: SignParams, bits: int) -> str:
    return params.digest or _CURVE_DIGESTS[bits]


def _padding(params: SignParams) -> Any:
    from cryptography.hazmat.primitives.asymmetric import padding

    if params.algorithm == "rsa-pkcs1v15":
        return padding.PKCS1v15()
    digest = library_digest(params.digest or "sha256")
    return padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH)


def _numbers_of(der: bytes, bits: int) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    r, s = decode_dss_signature(der)
    return r.to_bytes(bits // 8, "big") + s.to_bytes(bits // 8, "big")


def _der_of(raw: bytes, bits: int) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    if len(raw) != bits // 4:
        raise ValueError
    half = len(raw) // 2
    return encode_dss_signature(int.from_bytes(raw[:half], "big"), int.from_bytes(raw[half:], "big"))
