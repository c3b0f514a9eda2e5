"""The entry point of the group `sideband.v1.op`: registers the family `crypto`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from sideband.ops import OpFamily
from sideband.plugins import PluginContext

from ._cipher_ops import (
    aes_cbc_decrypt,
    aes_cbc_encrypt,
    aes_gcm_decrypt,
    aes_gcm_encrypt,
    rsa_oaep_decrypt,
    rsa_oaep_encrypt,
)
from ._config import Config
from ._derive_ops import hkdf, pbkdf2, scrypt
from ._digest_ops import compare_bytes, hash_data, hmac_data, hmac_verify, random_bytes
from ._scope import CryptoScope
from ._signature_ops import create_key, generate_key, sign_data, verify_signature
from ._work import Work

__all__ = ["Config", "lifespan", "sideband_ops"]


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[Work]:
    """The threads of one host. What nobody waits for any more has ended when this has."""
    async with anyio.create_task_group() as tasks:
        yield Work(ctx.config, tasks)


def sideband_ops() -> OpFamily:
    """The ops of the family."""
    return OpFamily(
        name="crypto",
        ops=(
            aes_cbc_decrypt,
            aes_cbc_encrypt,
            aes_gcm_decrypt,
            aes_gcm_encrypt,
            compare_bytes,
            create_key,
            generate_key,
            hash_data,
            hkdf,
            hmac_data,
            hmac_verify,
            pbkdf2,
            random_bytes,
            rsa_oaep_decrypt,
            rsa_oaep_encrypt,
            scrypt,
            sign_data,
            verify_signature,
        ),
        scope=CryptoScope,
        doc="Digests, signatures and encryption, with keys that skills can use without seeing them.",
    )
