"""The broker: the one seam between what skills, tools and plugins want and the world."""

from ._broker import Broker
from ._call import Call, EffectReport, Progress
from ._claims import Claims
from ._decisions import Approver
from ._errors import KeyReused
from ._lookup import BoundOp, Ops
from ._recovery import Recovered, recover
from ._redaction import Redactor, Unserializable

__all__ = [
    "Approver",
    "BoundOp",
    "Broker",
    "Call",
    "Claims",
    "EffectReport",
    "KeyReused",
    "Ops",
    "Progress",
    "Recovered",
    "Redactor",
    "Unserializable",
    "recover",
]
