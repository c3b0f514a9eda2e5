"""A skill whose worker keeps running, as a target of attacks."""

import ctypes
import os
import stat
import sys

from sideband.skill import secrets, tool  # noqa: F401 - an SDK that the other skills do not have

canary = ctypes.create_string_buffer(b"canary of the neighbor")


@tool
async def settle(name: str) -> dict:
    """Set the process name by which the host finds the worker, and return its environment and descriptors."""
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
    descriptors = {}
    for descriptor in range(256):
        try:
            descriptors[str(descriptor)] = stat.S_IFMT(os.fstat(descriptor).st_mode)
        except OSError:
            continue
    return {
        "neighbor_snapshot": os.path.dirname(__file__),  # noqa: PTH120  as skills do
        "neighbor_sdk": sys.path[0],
        "neighbor_address": ctypes.addressof(canary),
        "environment": dict(os.environ),
        "descriptors": descriptors,
    }
