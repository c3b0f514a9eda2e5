"""The counters of one run. Synchronous, and bounded in size whatever a model calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from attrs import frozen
from sideband.hooks import thaw

from ._recent import Recent

_MAX_CALLS = 2_048
_MAX_TOOLS = 512


def fingerprint(value: Any) -> str:
    """Return a digest of data that does not depend on the order of keys.

    Example:
        >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
        True
    """
    canonical = json.dumps(thaw(value), sort_keys=True, separators=(",", ":"), default=repr)
    return sha256(canonical.encode()).hexdigest()


@frozen
class Seen:
    """The counts for a call.

    Attributes:
        exact: failures of the tool with these arguments.
        tool: failures of the tool with any arguments.
        unchanged: consecutive times that a read-only call returned this result.
    """

    exact: int = 0
    tool: int = 0
    unchanged: int = 0


class Counters:
    """Counters of failures and unchanged results.

    Example:
        >>> counters = Counters()
        >>> counters.failed("github.stars", {"repo": "a/b"})
        Seen(exact=1, tool=1, unchanged=0)
        >>> counters.failed("github.stars", {"repo": "c/d"})
        Seen(exact=1, tool=2, unchanged=0)
    """

    def __init__(self) -> None:
        self._exact: Recent[tuple[str, str], int] = Recent(_MAX_CALLS)
        self._tools: Recent[str, int] = Recent(_MAX_TOOLS)
        self._results: Recent[tuple[str, str], tuple[str, int]] = Recent(_MAX_CALLS)

    def seen(self, tool: str, arguments: Mapping[str, Any]) -> Seen:
        """Return the counts for a call."""
        call = (tool, fingerprint(arguments))
        return Seen(self._exact.get(call, 0), self._tools.get(tool, 0), self._results.get(call, ("", 0))[1])

    def failed(self, tool: str, arguments: Mapping[str, Any]) -> Seen:
        """Count a call that failed."""
        call = (tool, fingerprint(arguments))
        self._exact.put(call, self._exact.get(call, 0) + 1)
        self.refused(tool)
        return self.seen(tool, arguments)

    def refused(self, tool: str) -> None:
        """Count a denied call as a failure of its tool."""
        self._tools.put(tool, self._tools.get(tool, 0) + 1)

    def succeeded(self, tool: str, arguments: Mapping[str, Any], result: Any, *, read_only: bool) -> Seen:
        """Reset the failures of this call and of its tool, and count unchanged results of a read-only tool.

        A tool that is not read-only may have changed what others read, so it resets the counts of all results.
        """
        call = (tool, fingerprint(arguments))
        self._exact.pop(call, 0)
        self._tools.pop(tool, 0)
        if not read_only:
            self._results.clear()
            return Seen()
        now = fingerprint(result)
        before, count = self._results.get(call, ("", 0))
        self._results.put(call, (now, count + 1 if now == before else 1))
        return self.seen(tool, arguments)
