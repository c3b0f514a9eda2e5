"""Attempts to run a call. A call that its host's death interrupted runs again, and its recorded effects are answered.

The key of an effect consists of the key of its call, the op, a digest of the call's seed and of the parameters, and its
ordinal among equal ones. The seed is content of a ledger line: when that is erased, parameters cannot be guessed from
keys. A read, which is never claimed, also has the digest of the call's domain in its key: after a change of the code or
of the grant it is requested again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from secrets import token_hex
from typing import Self

from attrs import define, field

from ..approvals import ApprovalNeeded
from ..ledger import EffectRecord
from ..ops import OpError, OpFailed
from ._matching import EffectMatcher, is_name

BLOB = "sideband.answer"
"""The name in the note of an effect under which the digest of its answer stands, if it is too large for the ledger."""

CONTINUES = "continues"
"""The name in the note of an own op that continues where it was interrupted, so that its key may be used again."""

ALWAYS = "always"
"""The value of that name if the op also continues after a cancellation, because it has no effect but those of its call,
which have keys of their own."""

_DOMAIN = re.compile(r"@[0-9a-f]{16}\Z")
_READ = re.compile(r":[0-9a-f]{16}:[0-9]+@[0-9a-f]{16}\Z")
_RECOVERED = "effect.failed"
"""The code of the error of an effect that a recovery found not to have happened. Its call never got an answer."""


@define(eq=False, kw_only=True)
class Attempt:
    """One attempt to run a call, with the record of the earlier ones.

    Args:
        key: the key of the call.
        started: the time at which the first attempt began (ISO 8601), the same for all attempts.
        seed: the seed of the call's random numbers and keys, the same for all attempts. It is recorded, and not secret.
        parks: whether the call may wait for an approval, and run again later.
        stops: whether the call may cause no further effects after one whose outcome is unknown.
        records: the recorded effects of earlier attempts, oldest first.

    Attributes:
        answered: the ids of the effects whose recorded answer was used again.
        unknown: the error about the effect that stopped the call.
        waits: the approval that the call waits for. It causes no further effects, and runs again once it is given.
        keeps: whether large answers are kept until the outcome of the call is recorded.
    """

    key: str
    started: str
    seed: str
    stops: bool = False
    parks: bool = False
    answered: list[str] = field(factory=list, init=False)
    unknown: OpError | None = field(default=None, init=False)
    waits: ApprovalNeeded | None = field(default=None, init=False)
    keeps: bool = field(default=False, init=False)
    _effects: EffectMatcher[EffectRecord] = field(factory=EffectMatcher, init=False, repr=False)
    _keys: dict[str, str] = field(factory=dict, init=False, repr=False)

    @classmethod
    def first(cls, key: str, *, seed: str = "") -> Self:
        """Return the first attempt of a call that begins now, with a new seed unless one is given."""
        return cls(key=key, started=datetime.now(UTC).isoformat(timespec="microseconds"), seed=seed or token_hex(16))

    def wait_for(self, needed: ApprovalNeeded) -> None:
        """Note that the call needs an approval, and that there is no approver."""
        if self.parks and self.waits is None:
            self.waits = needed

    def remember(self, records: Iterable[EffectRecord]) -> None:
        """Add the recorded effects of earlier attempts, oldest first."""
        for record in records:
            relative = (record.key or "")[len(self.key) + 1 :]
            # Another call may have a key that begins like that of this one, and effects of an op are not the call's.
            if not is_name(_DOMAIN.sub("", relative)):
                continue
            known = self._effects.recorded.get(record.key or "")
            if known is None or not _is_answer(known):
                self._effects.recorded[record.key or ""] = record

    def effect_key(self, effect: str, op: str, digest: str, *, within: str | None = None, domain: str = "") -> str:
        """Return the key of the next effect with these parameters.

        Args:
            effect: the id of the effect.
            op: the op.
            digest: the digest of the parameters.
            within: the id of the enclosing effect, which has its own ordinals: it is not requested again if it is
                answered from the record.
            domain: the domain of the call, for a read.
        """
        outer = self.key if within is None else f"{self._keys.get(within, within)}/"
        salted = hashlib.sha256(f"{self.seed}{digest}".encode()).hexdigest()
        of_domain = f"@{hashlib.sha256(domain.encode()).hexdigest()[:16]}" if domain else ""
        key = self._effects.name(op, salted, within=outer) + of_domain
        self.begin(effect, key)
        return key

    def begin(self, effect: str, key: str) -> None:
        """Note the key of an effect, from which those of its child effects are derived."""
        self._keys[effect] = key

    def key_of(self, effect: str) -> str:
        """Return the key of an effect."""
        return self._keys[effect]

    @property
    def is_repeated(self) -> bool:
        """Whether there is a record of effects of earlier attempts."""
        return bool(self._effects.recorded)

    def answer(self, key: str) -> EffectRecord | None:
        """Return the recorded effect with that key, if it was answered. It now counts as requested again."""
        record = self._effects.find(key)
        return record if record is not None and _is_answer(record) else None

    def unknown_effect(self, key: str) -> str | None:
        """Return the id of the recorded effect with that key if its outcome is unknown."""
        record = self._effects.recorded.get(key)
        unknown = record is not None and record.state == "unknown" and not _is_answer(record) and not is_read(key)
        return record.effect if record is not None and unknown else None

    @property
    def stopped_by(self) -> str:
        """The id of the effect that stopped the call, or an empty string."""
        return str(getattr(self.unknown, "effect", ""))

    @property
    def codes(self) -> frozenset[str]:
        """The digests of the code that caused the recorded effects which change something."""
        return frozenset(one.code for one in self._effects.recorded.values() if _may_have_happened(one))

    @property
    def skipped(self) -> tuple[EffectRecord, ...]:
        """The recorded effects that change something and that this attempt has not requested."""
        return tuple(one for one in self._effects.left.values() if _may_have_happened(one))


def is_read(key: str) -> bool:
    """Return whether this is the key of a read, which only names its recorded answer and is not claimed."""
    return _READ.search(key) is not None


def recorded_error(record: EffectRecord) -> OpError | None:
    """Return the error that was the answer of a recorded effect, or ``None`` if it had a result."""
    if record.status != "failed" or record.error is None:
        return None
    return OpFailed.from_dict({"op": record.op, **record.error})


def _is_answer(record: EffectRecord) -> bool:
    if record.status == "failed" and record.error is not None:
        return record.error.get("code") not in {_RECOVERED, ApprovalNeeded.code}
    return record.status == "done"


def _may_have_happened(record: EffectRecord) -> bool:
    return not is_read(record.key or "") and record.status in {"done", "unknown", None}
