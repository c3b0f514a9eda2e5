"""Op specs, capabilities and the context of a dispatch: what an author of an op family imports."""

from ..contexts import Credential, CredentialResolver, OpContext, Origin
from ._capability import Capability, Grant
from ._errors import (
    CapabilityInvalid,
    EffectInFlight,
    EffectUnknown,
    EgressRefused,
    LimitExceeded,
    OpCancelled,
    OpDenied,
    OpError,
    OpFailed,
    OpNotFound,
    OpParamsInvalid,
    OpResultInvalid,
    OpTimeout,
    OpUnavailable,
)
from ._levels import Level
from ._params import OpParams
from ._recorded import Reconciled, Recorded, Undo, UndoStep
from ._scope import Scope
from ._sdk import render_family, write_sdk
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
    "Undo",
    "UndoStep",
    "op",
    "render_family",
    "write_sdk",
]
