"""Errors of the op family `demo`.

OpFailed
└── ServiceFailed(ConnectionError)   demo.service   the service ended before it said where it is
"""

from __future__ import annotations

from sideband.ops import OpFailed


class ServiceFailed(OpFailed, ConnectionError):
    """The demo's service ended before it said where it is."""

    code = "demo.service"

    def __init__(self, exit_code: int | None) -> None:
        super().__init__(
            f"the demo's service did not start (exit code {exit_code})",
            hint="see whether a process may listen on 127.0.0.1 here",
        )
