"""The errors that are specific to this family. Others are in `sideband.blobs`: `blob.missing`, `blob.too_large` etc.

OpFailed
└── BlobsError                   blobs.failed
    ├── BlobsFull(RuntimeError)      blobs.full      the limit on the total size is exceeded
    └── BlobsNotText(ValueError)     blobs.text      the content is not UTF-8
"""

from __future__ import annotations

from sideband.blobs import BlobDamaged, BlobError, BlobMissing, BlobStorage, BlobTooLarge
from sideband.ops import OpFailed


class BlobsError(OpFailed):
    """An op on blobs failed; nothing was changed."""

    nothing_happened = True
    code = "blobs.failed"


class BlobsFull(BlobsError, RuntimeError):
    """The total size of all blobs would exceed the limit."""

    code = "blobs.full"

    def __init__(self, total: int, limit: int) -> None:
        super().__init__(
            f"total size of all blobs would be {total:,} bytes, more than the limit of {limit:,}",
            hint="delete some (`blobs.list`, `blobs.delete`), or raise `max_total_bytes` in `[plugins.blobs]`",
        )


class BlobsNotText(BlobsError, ValueError):
    """The content, or the requested part of it, is not UTF-8."""

    code = "blobs.text"

    def __init__(self, sha256: str, position: int) -> None:
        super().__init__(f"blob `{sha256}` is not valid UTF-8 at byte {position:,}", hint="set `kind` to `bytes`")


ERRORS = (
    BlobDamaged,
    BlobError,
    BlobMissing,
    BlobStorage,
    BlobTooLarge,
    BlobsError,
    BlobsFull,
    BlobsNotText,
)
"""The errors that skills can catch by class."""
