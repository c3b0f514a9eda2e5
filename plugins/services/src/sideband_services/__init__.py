"""The op family `services`: skills call what other skills provide, by the name of a service."""

from ._errors import ServiceCallFailed, ServiceError, ServiceProviderUnknown, ServiceRefused, ServiceUnknown
from ._scope import ServicesScope
from ._version import __version__

__all__ = [
    "ServiceCallFailed",
    "ServiceError",
    "ServiceProviderUnknown",
    "ServiceRefused",
    "ServiceUnknown",
    "ServicesScope",
    "__version__",
]
