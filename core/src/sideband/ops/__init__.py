"""The API for authors of op families: op specs, scopes, capabilities, grants and errors."""

from ..contexts import Credential, CredentialResolver, OpContext, Origin
from ._capability import *
from ._errors import *
from ._levels import *
from ._params import *
from ._recorded import *
from ._scope import *
from ._sdk import *
from ._sdk_render import SdkInvalid
from ._spec import OpFamily, OpSpec, op

__all__ = [
    "Capability",
    "CapabilityInvalid",
    "Credential",
    "CredentialResolver",
    "EffectInFlight",
    "EffectUnknown",
    "EgressRefused",
    "Grant",
    "Level",
    "LimitExceeded",
    "OpCancelled",
    "OpContext",
    "OpDenied",
    "OpError",
    "OpFailed",
    "OpFamily",
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
    "Scope",
    "SdkInvalid",
    "SecretsClosed",
    "Undo",
    "UndoStep",
    "op",
    "render_family",
    "sdk_functions",
    "write_sdk",
]
