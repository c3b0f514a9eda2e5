"""The errors of the ops.

    OpFailed
    └── PlistError                       plist.failed
        ├── PlistSyntax(ValueError)          plist.syntax       an invalid or damaged property list
        ├── PlistRefused(ValueError)         plist.refused      entities, or an object that contains itself
        ├── PlistTooLarge(ValueError)        plist.too_large    a limit on size, depth or values is exceeded
        ├── PlistValue(ValueError)           plist.value        a value that the target format does not support
        └── PlistMissing(LookupError)        plist.missing      a path to extract does not exist

After any of these errors, nothing was changed.
"""

from __future__ import annotations

from sideband.ops import OpFailed


class PlistError(OpFailed):
    """A property list could not be read or written."""

    nothing_happened = True
    code = "plist.failed"


class PlistSyntax(PlistError, ValueError):
    """The data is not a valid property list in XML or in the binary format."""

    code = "plist.syntax"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"invalid property list: {problem}",
            hint="pass XML or the binary format `bplist00`; convert older formats with `plutil -convert xml1`",
        )


class PlistRefused(PlistError, ValueError):
    """The document uses features that property lists do not need, and that can expand it without limit."""

    code = "plist.refused"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"property list rejected: {problem}",
            hint="do not trust this document; common tools do not write documents like this",
        )


class PlistTooLarge(PlistError, ValueError):
    """The document exceeds the limits on size, depth or values."""

    code = "plist.too_large"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"property list is too large: {problem}", hint="reduce it, or raise the limits in `[plugins.plist]`"
        )


class PlistValue(PlistError, ValueError):
    """A value that JSON or property lists do not support."""

    code = "plist.value"

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(problem, hint=hint)


class PlistMissing(PlistError, LookupError):
    """A path to extract does not exist in the property list."""

    code = "plist.missing"

    def __init__(self, name: str, step: str) -> None:
        super().__init__(
            f"cannot extract `{name}`: `{step}` does not exist",
            hint="parse it without `extract` to see its content",
        )


ERRORS = (
    PlistError,
    PlistMissing,
    PlistRefused,
    PlistSyntax,
    PlistTooLarge,
    PlistValue,
)
"""The errors that skills can catch by class."""
