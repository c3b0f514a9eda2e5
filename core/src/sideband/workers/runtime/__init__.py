"""What runs inside a worker. The standard library only: neither a dependency nor the host's code is in reach there."""

from ._codec import MAX_FRAME, MAX_NESTING, BadFrame, LineBuffer, Unsendable, decode, encode
from ._context import current_call
from ._errors import NoWorker, OpError
from ._runtime import PROTOCOL, running, serve

__all__ = [
    "MAX_FRAME",
    "MAX_NESTING",
    "PROTOCOL",
    "BadFrame",
    "LineBuffer",
    "NoWorker",
    "OpError",
    "Unsendable",
    "current_call",
    "decode",
    "encode",
    "running",
    "serve",
]
