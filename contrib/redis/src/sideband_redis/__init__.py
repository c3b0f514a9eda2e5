"""A store of sideband on Redis or Valkey, which the hosts of several machines share."""

from ._errors import (
    RedisBusy,
    RedisCutOff,
    RedisUnconfirmed,
    RedisUnreachable,
    RedisUnsupported,
    RedisUnwritable,
    RedisValueError,
)
from ._models import Config
from ._store import RedisStore, open_redis
from ._version import __version__

__all__ = [
    "Config",
    "RedisBusy",
    "RedisCutOff",
    "RedisStore",
    "RedisUnconfirmed",
    "RedisUnreachable",
    "RedisUnsupported",
    "RedisUnwritable",
    "RedisValueError",
    "__version__",
    "open_redis",
]
