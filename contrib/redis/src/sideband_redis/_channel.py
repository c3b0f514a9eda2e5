"""The channel of events, and connections for it, which need no settings of the server."""

from __future__ import annotations

from ._address import address_of
from ._connection import RedisConnection, connect
from ._models import Config


def channel_of(config: Config) -> str:
    """Return the name of the channel."""
    return f"{{{config.prefix}}}:events"


async def connect_once(config: Config) -> RedisConnection:
    """Open a connection to the server.

    Raises:
        OSError: if it cannot be reached.
        ConnectionLost: if it closes the connection.
        ServerError: if it is starting.
        StoreError: if it refuses the user.
    """
    address = address_of(config.address.get_secret_value())
    password = address.password or config.password.get_secret_value()
    seconds = min(config.wait_seconds, config.command_seconds)
    return await connect(
        address, password, ca_file=config.ca_file, seconds=seconds, command_seconds=config.command_seconds
    )
