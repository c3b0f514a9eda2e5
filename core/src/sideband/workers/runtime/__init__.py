"""The runtime inside a worker. It uses the standard library only, because nothing else is importable there."""

from ._codec import MAX_FRAME, MAX_NESTING, MAX_VALUES, BadFrame, LineBuffer, Unsendable, decode, encode
from ._context import CALL_FILE, current_call
from ._op_errors import (
    EffectInFlight,
    EffectUnknown,
    EgressRefused,
    LimitExceeded,
    OpCancelled,
    OpDenied,
    OpError,
    OpNotFound,
    OpParamsInvalid,
    OpResultInvalid,
    OpTimeout,
    OpUnavailable,
    SecretsClosed,
)
from ._output import MAX_LINE, OutputAllowance, left_out
from ._runtime import PROTOCOL, running, serve
from ._same_values import CallRandom, random_of_call, start_time

__all__ = [
    "CALL_FILE",
    "MAX_FRAME",
    "MAX_LINE",
    "MAX_NESTING",
    "MAX_VALUES",
    "PROTOCOL",
    "BadFrame",
    "CallRandom",
    "EffectInFlight",
    "EffectUnknown",
    "EgressRefused",
    "LimitExceeded",
    "LineBuffer",
    "OpCancelled",
    "OpDenied",
    "OpError",
    "OpNotFound",
    "OpParamsInvalid",
    "OpResultInvalid",
    "OpTimeout",
    "OpUnavailable",
    "OutputAllowance",
    "SecretsClosed",
    "Unsendable",
    "current_call",
    "decode",
    "encode",
    "left_out",
    "random_of_call",
    "running",
    "serve",
    "start_time",
]
