"""Errors of the op family `demo`.

OpFailed
└── ServiceFailed(ConnectionError)   demo.service   the demo service did not start
"""

from __future__ import annotations

from sideband.ops import OpFailed


class ServiceFailed(OpFailed, ConnectionError):
    """The demo service exited before it reported its port."""

    code = "demo.service"

    def __init__(self, exit_code: int | None) -> None:
        super().__init__(
            f"the demo service did not start (exit code {exit_code})",
            hint="check whether a process can listen on 127.0.0.1 on this machine",
        )
