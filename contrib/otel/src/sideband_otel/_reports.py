"""Report that telemetry cannot be sent, and that it can again."""

from __future__ import annotations

import logging
from threading import Lock
from typing import Any

_log = logging.getLogger("sideband.otel")


class Reports:
    """Reports when the exporters of a host begin to fail, and when they work again, and not each time.

    They are called by threads of the SDK.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._failing: set[int] = set()  # the ids of exporters
        self._is_closed = False

    def watch(self, exporter: Any) -> Any:
        """Return an exporter after its results have begun to be watched."""
        send = exporter.export

        def export(*args: Any, **options: Any) -> Any:
            succeeded = False
            try:
                result = send(*args, **options)
                succeeded = result.name == "SUCCESS"
            finally:
                self._take(id(exporter), succeeded=succeeded)
            return result

        exporter.export = export
        return exporter

    def close(self, *, unsent_after: float | None = None) -> None:
        """Report nothing anymore.

        Args:
            unsent_after: how long the end of a host has waited for what is not sent, in seconds.
        """
        with self._lock:
            self._is_closed, is_known = True, bool(self._failing)
        if unsent_after is not None and not is_known:
            _log.warning("telemetry was not sent within %g s, and is lost; is the collector running?", unsent_after)

    def _take(self, exporter: int, *, succeeded: bool) -> None:
        with self._lock:
            before = bool(self._failing)
            (self._failing.discard if succeeded else self._failing.add)(exporter)
            fails = bool(self._failing)
            if fails == before or self._is_closed:
                return
        text = "telemetry cannot be sent; is the collector running?" if fails else "telemetry is sent again"
        _log.warning("%s", text)
