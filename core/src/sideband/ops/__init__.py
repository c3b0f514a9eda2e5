"""The API for authors of op families: op specs, scopes, capabilities, grants and errors.

The generator of SDKs is imported on first use, because only programs that run skills need it.
"""

from typing import TYPE_CHECKING

from .._from_host import FromHost
from .._lazy import lazy
from ..contexts import Credential, CredentialResolver, OpContext, Origin, RedactedText
from ._capability import *
from ._errors import *
from ._levels import *
from ._params import *
from ._reach import *
from ._recorded import *
from ._scope import *
from ._spec import OpFamily, OpSpec, op

if TYPE_CHECKING:
    from ._sdk import *
    from ._sdk_render import SdkInvalid

__all__ = [
    "LIMITED",
    "Capability",
    "CapabilityInvalid",
    "ContextRevoked",
    "Credential",
    "CredentialResolver",
    "EffectInFlight",
    "EffectUnknown",
    "EgressRefused",
    "FromHost",
    "Grant",
    "Level",
    "LimitExceeded",
    "Lower",
    "OpCancelled",
    "OpContext",
    "OpDenied",
    "OpError",
    "OpFailed",
    "OpFamily",
    "OpInternal",
    "OpNotFound",
    "OpParams",
    "OpParamsInvalid",
    "OpResultInvalid",
    "OpSpec",
    "OpTimeout",
    "OpUnavailable",
    "Origin",
    "Reconciled",
    "Recorded",
    "RedactedText",
    "Scope",
    "SdkInvalid",
    "SecretsClosed",
    "ToolCallFailed",
    "Undo",
    "UndoStep",
    "level_of",
    "op",
    "reach",
    "render_family",
    "render_stub",
    "sdk_functions",
    "stub_files",
    "write_sdk",
]

__getattr__, __dir__ = lazy(__name__, "._sdk_render", "._sdk")
