"""Parameters and results of the ops. Text is encoded as UTF-8; other values are bytes, never hexadecimal text."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    Strict,
    WithJsonSchema,
    model_validator,
)
from sideband.ops import OpParams

_HANDLE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}\Z")
_MAX_KEY_BYTES = 16 * 1024
_MAX_SALT_BYTES = 64 * 1024

Digest = Literal[
    "sha256", "sha384", "sha512", "sha3_256", "sha3_384", "sha3_512", "blake2b", "blake2s", "sha224", "sha1", "md5"
]
MacDigest = Literal["sha256", "sha384", "sha512", "sha3_256", "sha3_384", "sha3_512", "sha224", "sha1", "md5"]
DeriveDigest = Literal["sha256", "sha384", "sha512", "sha1"]
SignDigest = Literal["sha256", "sha384", "sha512"]
Scheme = Literal["ed25519", "ecdsa", "rsa-pss", "rsa-pkcs1v15"]
KeyKind = Literal["ed25519", "ecdsa-p256", "ecdsa-p384", "rsa-2048", "rsa-3072", "rsa-4096", "bytes-16", "bytes-32"]


def _as_bytes(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise ValueError("text is not valid Unicode; pass it as bytes") from None


def _check_handle(name: str) -> str:
    if not _HANDLE.match(name):
        raise ValueError("secret name must consist of lower-case letters, digits, `_`, `.` and `-`")
    return name


_TEXT_OR_BYTES = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "string", "format": "binary"}]})
Data = Annotated[bytes, BeforeValidator(_as_bytes), _TEXT_OR_BYTES]
# strict: otherwise hexadecimal or base64 text would be accepted by mistake, as its UTF-8
Raw = Annotated[bytes, Strict()]
Handle = Annotated[str, AfterValidator(_check_handle)]
Key = Annotated[Data, Field(min_length=1, max_length=_MAX_KEY_BYTES)]


class _WithKey(OpParams):
    """A key: its bytes, or the name of a stored secret."""

    key: Key | None = Field(default=None, repr=False)
    handle: Handle | None = None

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if (self.key is None) == (self.handle is None):
            raise ValueError("pass either `key`, the key itself, or `handle`, the name of a stored key")
        return self


class HashParams(OpParams):
    """Parameters of `crypto.hash`."""

    data: Data
    algorithm: Digest = "sha256"
    legacy: bool = False


class HmacParams(_WithKey):
    """Parameters of `crypto.hmac`."""

    data: Data
    algorithm: MacDigest = "sha256"
    legacy: bool = False


class HmacVerifyParams(HmacParams):
    """Parameters of `crypto.hmac_verify`."""

    mac: Annotated[Raw, Field(max_length=64)]


class CompareParams(OpParams):
    """Parameters of `crypto.compare`."""

    a: Data
    b: Data


class RandomParams(OpParams):
    """Parameters of `crypto.random`."""

    length: Annotated[int, Field(ge=1, le=64 * 1024)] = 32


class _Derive(_WithKey):
    length: Annotated[int, Field(ge=1, le=8160)] = 32


class Pbkdf2Params(_Derive):
    """Parameters of `crypto.pbkdf2`."""

    salt: Annotated[Data, Field(max_length=_MAX_SALT_BYTES)]
    iterations: Annotated[int, Field(ge=1)]
    algorithm: DeriveDigest = "sha256"


class ScryptParams(_Derive):
    """Parameters of `crypto.scrypt`."""

    salt: Annotated[Data, Field(max_length=_MAX_SALT_BYTES)]
    n: Annotated[int, Field(ge=2, le=1 << 26)] = 1 << 17
    r: Annotated[int, Field(ge=1, le=1024)] = 8
    p: Annotated[int, Field(ge=1, le=1024)] = 1


class HkdfParams(_Derive):
    """Parameters of `crypto.hkdf`."""

    salt: Annotated[Data, Field(max_length=_MAX_SALT_BYTES)] = b""
    info: Annotated[Data, Field(max_length=_MAX_SALT_BYTES)] = b""
    algorithm: DeriveDigest = "sha256"


class AesGcmEncryptParams(_WithKey):
    """Parameters of `crypto.aes_gcm_encrypt`."""

    data: Data
    associated_data: Data = b""
    nonce: Raw | None = None


class AesGcmDecryptParams(_WithKey):
    """Parameters of `crypto.aes_gcm_decrypt`."""

    nonce: Raw
    ciphertext: Raw
    associated_data: Data = b""


class AesCbcEncryptParams(_WithKey):
    """Parameters of `crypto.aes_cbc_encrypt`."""

    data: Data
    iv: Raw | None = None


class AesCbcDecryptParams(_WithKey):
    """Parameters of `crypto.aes_cbc_decrypt`."""

    iv: Raw
    ciphertext: Raw


class OaepParams(_WithKey):
    """Parameters of `crypto.rsa_oaep_encrypt` and `crypto.rsa_oaep_decrypt`."""

    data: Data
    algorithm: DeriveDigest = "sha256"
    label: Annotated[Data, Field(max_length=1024)] = b""


class SignParams(_WithKey):
    """Parameters of `crypto.sign`."""

    data: Data
    algorithm: Scheme
    digest: SignDigest | None = None
    form: Literal["der", "raw"] = "der"


class VerifyParams(SignParams):
    """Parameters of `crypto.verify`."""

    signature: Annotated[Raw, Field(max_length=4096)]


class GenerateKeyParams(OpParams):
    """Parameters of `crypto.generate_key`."""

    kind: KeyKind


class CreateKeyParams(OpParams):
    """Parameters of `crypto.create_key`."""

    kind: KeyKind
    handle: Handle
    ops: Annotated[list[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]], Field(min_length=1, max_length=8)]


class AesGcmText(BaseModel):
    """The result of an encryption.

    Attributes:
        nonce: the nonce; it need not be kept secret.
        ciphertext: the ciphertext, followed by the tag of 16 bytes.
    """

    nonce: bytes
    ciphertext: bytes


class AesCbcText(BaseModel):
    """The result of an encryption.

    Attributes:
        iv: the initialization vector; it need not be kept secret.
        ciphertext: the ciphertext.
    """

    iv: bytes
    ciphertext: bytes


class GeneratedKey(BaseModel):
    """A new key.

    Attributes:
        key: the key itself: PEM (PKCS 8), or plain bytes.
        public: the public key as PEM; ``None`` for a symmetric key.
    """

    key: bytes
    public: str | None = None


class CreatedKey(BaseModel):
    """A new key that is stored in the host.

    Attributes:
        handle: the name of the secret.
        public: the public key as PEM; ``None`` for a symmetric key.
    """

    handle: str
    public: str | None = None
