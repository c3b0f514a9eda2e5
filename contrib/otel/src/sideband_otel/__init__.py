"""OpenTelemetry for sideband."""

from ._errors import ExporterInvalid, HeadersInvalid
from ._models import Config
from ._version import __version__

__all__ = ["Config", "ExporterInvalid", "HeadersInvalid", "__version__"]
