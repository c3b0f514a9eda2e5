"""The op family `blobs` of sideband: bytes that are kept by their content.

The ops are used by name (`blobs.put`); what is here is for code that catches their errors or builds on their models.
What is wrong with a blob is told by the errors of `sideband.blobs`.
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
