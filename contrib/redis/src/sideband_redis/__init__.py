"""A store of sideband on Redis or Valkey, which the hosts of several machines share."""

from ._errors import (
    RedisBusy,
    RedisCutOff,
    RedisDamaged,
    RedisUnconfirmed,
    RedisUnreachable,
    RedisUnsupported,
    RedisUnwritable,
    RedisValueError,
)
from ._following import HostEvents, follow_events
from ._host_event import HostEvent
from ._models import Config
from ._store import RedisStore, open_redis
from ._version import __version__

__all__ = [
    "Config",
    "HostEvent",
    "HostEvents",
    "RedisBusy",
    "RedisCutOff",
    "RedisDamaged",
    "RedisStore",
    "RedisUnconfirmed",
    "RedisUnreachable",
    "RedisUnsupported",
    "RedisUnwritable",
    "RedisValueError",
    "__version__",
    "follow_events",
    "open_redis",
]
