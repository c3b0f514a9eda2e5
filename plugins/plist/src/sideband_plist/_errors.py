"""What the ops fail with.

    OpFailed
    └── PlistError                       plist.failed
        ├── PlistSyntax(ValueError)          plist.syntax       it is no property list, or a damaged one
        ├── PlistRefused(ValueError)         plist.refused      it declares entities, or holds itself
        ├── PlistTooLarge(ValueError)        plist.too_large    a limit on size, depth or values
        ├── PlistValue(ValueError)           plist.value        a value that the other side does not have
        └── PlistMissing(LookupError)        plist.missing      what was to be extracted is not there

After any of them nothing has changed.
"""

from __future__ import annotations

from sideband.ops import OpFailed


class PlistError(OpFailed):
    """A property list could not be read or written."""

    nothing_happened = True
    code = "plist.failed"


class PlistSyntax(PlistError, ValueError):
    """The data are no property list in XML or in the binary form, or a damaged one."""

    code = "plist.syntax"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"this is no property list: {problem}",
            hint="XML and the binary form `bplist00` can be read; `plutil -convert xml1` makes one of what is older",
        )


class PlistRefused(PlistError, ValueError):
    """It uses what no property list needs, and what can make little data become much."""

    code = "plist.refused"

    def __init__(self, problem: str) -> None:
        super().__init__(f"this is not read: {problem}", hint="whoever made it means harm, or used no tool for it")


class PlistTooLarge(PlistError, ValueError):
    """It is longer, deeper, or holds more than the limits allow."""

    code = "plist.too_large"

    def __init__(self, problem: str) -> None:
        super().__init__(f"this is too large: {problem}", hint="`[plugins.plist]` sets the limits")


class PlistValue(PlistError, ValueError):
    """A value that JSON can't carry, or that a property list does not have."""

    code = "plist.value"

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(problem, hint=hint)


class PlistMissing(PlistError, LookupError):
    """What was to be extracted is not in the property list."""

    code = "plist.missing"

    def __init__(self, name: str, step: str) -> None:
        super().__init__(
            f"there is nothing for `{name}`: `{step}` is not there",
            hint="parse it without `extract`, and look at what it holds",
        )
