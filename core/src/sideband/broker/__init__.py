"""The broker: the single entry point for all effects of skills, tools and plugins."""

from ..contexts import SessionEnds
from ..errors import safe_text
from ._attempt import ALWAYS, CONTINUES, Attempt
from ._broker import Broker
from ._call import Call, EffectReport
from ._claims import Claims, LedgerClaims, Replay
from ._decisions import ASKED_BEFORE, answer_as_data, decisions_as_data, refusal, risk_of
from ._egress import check_egress
from ._errors import EffectMissing, KeyReused
from ._json_text import redact_json_text
from ._lookup import BoundOp, Ops
from ._matching import EffectMatcher
from ._progress import CallProgress, TakeProgress, delivered
from ._recovery import Recovered, recover
from ._redaction import Redaction, Unserializable
from ._secret_sources import SecretSources
from ._store_claims import claims_of
from ._tape import EffectCassette, EffectTape, TapedDispatch
from ._undo import PlannedStep, UndoneStep, UndoPlan, carry_out, effects_to_undo, plan_undo
from ._values import recordable, shortened

__all__ = [
    "ALWAYS",
    "ASKED_BEFORE",
    "CONTINUES",
    "Attempt",
    "BoundOp",
    "Broker",
    "Call",
    "CallProgress",
    "Claims",
    "EffectCassette",
    "EffectMatcher",
    "EffectMissing",
    "EffectReport",
    "EffectTape",
    "KeyReused",
    "LedgerClaims",
    "Ops",
    "PlannedStep",
    "Recovered",
    "Redaction",
    "Replay",
    "SecretSources",
    "SessionEnds",
    "TakeProgress",
    "TapedDispatch",
    "UndoPlan",
    "UndoneStep",
    "Unserializable",
    "answer_as_data",
    "carry_out",
    "check_egress",
    "claims_of",
    "decisions_as_data",
    "delivered",
    "effects_to_undo",
    "plan_undo",
    "recordable",
    "recover",
    "redact_json_text",
    "refusal",
    "risk_of",
    "safe_text",
    "shortened",
]
