"""What only this family can fail with. All else is in `sideband.blobs`: `blob.missing`, `blob.too_large` ….

OpFailed
└── BlobsError                   blobs.failed
    ├── BlobsFull(RuntimeError)      blobs.full      all blobs together would be more than the limit
    └── BlobsNotText(ValueError)     blobs.text      what is kept is no UTF-8
"""

from __future__ import annotations

from sideband.ops import OpFailed


class BlobsError(OpFailed):
    """An op on blobs failed; nothing was changed."""

    nothing_happened = True
    code = "blobs.failed"


class BlobsFull(BlobsError, RuntimeError):
    """All blobs together would be more than the limit."""

    code = "blobs.full"

    def __init__(self, total: int, limit: int) -> None:
        super().__init__(
            f"all blobs together would have {total:,} bytes, more than {limit:,}",
            hint="delete some (`blobs.list`, `blobs.delete`), or raise `max_total_bytes` in `[plugins.blobs]`",
        )


class BlobsNotText(BlobsError, ValueError):
    """What is kept, or this part of it, is no UTF-8."""

    code = "blobs.text"

    def __init__(self, sha256: str, position: int) -> None:
        super().__init__(
            f"the blob `{sha256}` is no UTF-8 text at byte {position:,}", hint='get it with `kind="bytes"`'
        )
