"""Cassettes: the effects of a call or a run, recorded once, and replayed without any connection or program.

A host with a cassette records each effect at the broker, or answers it from the file. All gates still apply: grants,
guards, redaction and the ledger.
"""

from ._cassette import Cassette, Mode
from ._errors import CassetteDivergence, CassetteInvalid
from ._file import CassetteFile, RecordedEffect, read_cassette
from ._version import __version__

__all__ = [
    "Cassette",
    "CassetteDivergence",
    "CassetteFile",
    "CassetteInvalid",
    "Mode",
    "RecordedEffect",
    "__version__",
    "read_cassette",
]
