"""The op family `blobs` of sideband: content-addressed storage.

Ops are called by name (`blobs.put`). Import from here to catch their errors or to use their models.
Errors of a single blob are in `sideband.blobs`.
"""

from ._config import Config
from ._errors import BlobsError, BlobsFull, BlobsNotText
from ._models import BlobDeleteResult, BlobGetResult, BlobInfo, BlobListResult
from ._version import __version__

__all__ = [
    "BlobDeleteResult",
    "BlobGetResult",
    "BlobInfo",
    "BlobListResult",
    "BlobsError",
    "BlobsFull",
    "BlobsNotText",
    "Config",
    "__version__",
]
