"""The ledger: a hash chain of JSON lines, written before and after each effect."""

from ._copies import fetch_copies
from ._entries import EffectRecord, Intent, LedgerEntry, Outcome, Status
from ._errors import (
    LedgerBusy,
    LedgerClosed,
    LedgerDamaged,
    LedgerError,
    LedgerIndexFailed,
    LedgerUnwritable,
)
from ._ledger import Ledger
from ._lines import Head
from ._query import find, loads, query, tail
from ._verify import Problem, Verification, verify

__all__ = [
    "EffectRecord",
    "Head",
    "Intent",
    "Ledger",
    "LedgerBusy",
    "LedgerClosed",
    "LedgerDamaged",
    "LedgerEntry",
    "LedgerError",
    "LedgerIndexFailed",
    "LedgerUnwritable",
    "Outcome",
    "Problem",
    "Status",
    "Verification",
    "fetch_copies",
    "find",
    "loads",
    "query",
    "tail",
    "verify",
]
