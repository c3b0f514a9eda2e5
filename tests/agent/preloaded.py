"""Import what hosts import on first use, in the process that forks them."""

import aiohttp  # noqa: F401
import anyio._backends._asyncio  # noqa: F401
import httpx  # noqa: F401
import sideband_model_client.fast_transport  # noqa: F401
import yaml  # noqa: F401
