"""The transports of servers: programs in isolation, and addresses."""

from ._http import http_transport
from ._program import program_transport

__all__ = ["http_transport", "program_transport"]
