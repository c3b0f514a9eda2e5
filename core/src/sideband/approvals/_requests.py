"""Requests for approval, and their answers."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, Self, get_args

from attrs import asdict, field, frozen
from attrs.validators import deep_iterable, deep_mapping, in_, instance_of, le, optional

from ..ops import Level, Origin

ApprovalKind = Literal["grant", "tool", "effect", "replay"]
"""What is asked about: a grant, a tool call, an effect, or whether an interrupted tool call runs again."""

ApprovalScope = Literal["once", "session", "always"]
"""What an approval admits: exactly this request, once; or whatever the grant allows that the request shows for it."""

ONCE_SECONDS = 3_600.0
_TEXTS = ("id", "kind", "subject", "question", "preview", "risk", "digest", "grantee")
_MAX_SHOWN = 2_000
_TEXT = instance_of(str)
_NUMBER = instance_of((int, float))


@frozen
class Approval:
    """The answer to a request.

    Args:
        verdict: ``allow`` or ``deny``.
        scope: what an ``allow`` admits; see ``ApprovalScope``.
        reason: why, for the record, and for the model if it is a ``deny``.
        by: who answered, for the record.

    Raises:
        ValueError: if the verdict or the scope is unknown.
        TypeError: if ``reason`` or ``by`` is not a text.

    Example:
        >>> Approval("allow").scope, Approval("deny", reason="not on Fridays").allowed
        ('once', False)
    """

    verdict: Literal["allow", "deny"]
    scope: ApprovalScope = "once"
    reason: str = ""
    by: str = "approver"

    def __attrs_post_init__(self) -> None:
        if self.verdict not in ("allow", "deny"):
            raise ValueError(f"`verdict`: expected `allow` or `deny`, got {self.verdict!r}")
        if self.scope not in ("once", "session", "always"):
            raise ValueError(f"`scope`: expected `once`, `session` or `always`, got {self.scope!r}")
        if not isinstance(self.reason, str) or not isinstance(self.by, str):
            raise TypeError(f"`reason` and `by` must be texts, got {self.reason!r} and {self.by!r}")

    @property
    def allowed(self) -> bool:
        """Whether the verdict is ``allow``."""
        return self.verdict == "allow"


def _immutable(grants: Mapping[ApprovalScope, tuple[str, ...]]) -> Mapping[ApprovalScope, tuple[str, ...]]:
    return MappingProxyType(dict(grants))


@frozen(kw_only=True)
class ApprovalRequest:
    """What a person is asked. All texts and values are redacted.

    Attributes:
        id: the id, under which the request is stored. Equal requests have the same id.
        kind: what is asked about.
        subject: the op, the tool, or the holder of the grant, such as ``skill:github`` or ``plugin:geo``.
        question: the question.
        effect: exactly what would happen: the parameters of the op, or the arguments of the tool. For a grant, its
            ``holder``, the ``name`` of that, the ``capabilities``, and what they are needed for.
        preview: what the op says that it would do; ``None`` if it has no preview.
        level: the level of the effect or tool; for a grant, the highest that it allows.
        risk: what guards noted about it; empty if nothing.
        origin: who requests it.
        digest: a digest of everything on which an approval with the scope ``once`` depends: the kind, the subject, the
            exact parameters, the grant, the policy, and the versions of the skill or plugin and of the guards. It
            contains a key of this host's home, so that it tells nothing about the parameters.
        grantee: a digest of who gets the grant of an approval: the kind, the subject, the principal, and the tool,
            version of the skill, or plugin that requests it.
        grants: the capabilities of the grant that an approval with this scope creates. A scope that is missing here is
            not offered; ``once`` always is.
        expires: the seconds after which an approval with the scope ``once`` expires, counted from the answer.
        asked: when it was asked, in seconds since 1970.
    """

    # A stored request may be damaged.
    id: str = field(validator=_TEXT)
    kind: ApprovalKind = field(validator=in_(get_args(ApprovalKind)))
    subject: str = field(validator=_TEXT)
    question: str = field(validator=_TEXT)
    effect: Mapping[str, Any] = field(factory=dict, converter=MappingProxyType)
    preview: str | None = field(default=None, validator=optional(_TEXT))
    level: Level | None = None
    risk: str = field(default="", validator=_TEXT)
    origin: Origin = field(factory=Origin)
    digest: str = field(validator=_TEXT, repr=False)
    grantee: str = field(validator=_TEXT, repr=False)
    grants: Mapping[ApprovalScope, tuple[str, ...]] = field(
        factory=dict, converter=_immutable, validator=deep_mapping(in_(get_args(ApprovalScope)), deep_iterable(_TEXT))
    )
    expires: float = field(default=ONCE_SECONDS, validator=[_NUMBER, le(ONCE_SECONDS)])
    asked: float = field(factory=time.time, validator=_NUMBER)

    def as_dict(self) -> dict[str, Any]:
        """Return the request as data."""
        return {
            **{name: getattr(self, name) for name in _TEXTS},
            "effect": dict(self.effect),
            "level": None if self.level is None else self.level.name,
            "origin": {name: value for name, value in asdict(self.origin).items() if value is not None},
            "grants": {scope: list(texts) for scope, texts in self.grants.items()},
            "expires": self.expires,
            "asked": self.asked,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the request of which this is the data."""
        return cls(
            **{
                **data,
                "level": None if data["level"] is None else Level[data["level"]],
                "origin": Origin(**data["origin"]),
                "grants": {scope: tuple(texts) for scope, texts in data["grants"].items()},
            }
        )


Approver = Callable[[ApprovalRequest], Awaitable[Approval]]
"""Answers requests for approval. If it raises, or returns anything else, nothing is approved."""


@frozen(kw_only=True)
class StoredApproval:
    """A stored request, and its answer.

    Attributes:
        request: the request.
        answer: the answer; ``None`` as long as it is open.
        answered: when it was answered, in seconds since 1970.
        used: when the answer was used, in seconds since 1970; ``None`` if it was not.
    """

    request: ApprovalRequest
    answer: Approval | None = None
    answered: float | None = field(default=None, validator=optional(_NUMBER))
    used: float | None = field(default=None, validator=optional(_NUMBER))

    @property
    def allowed(self) -> bool:
        """Whether it has an answer that allows it."""
        return self.answer is not None and self.answer.allowed

    @property
    def reason(self) -> str:
        """The reason of the answer; may be empty."""
        return "" if self.answer is None else self.answer.reason

    @property
    def state(self) -> Literal["open", "approved", "denied", "used", "expired", "granted"]:
        """``open``, ``approved``, ``denied``, ``used``, ``expired``, or ``granted`` if the answer created a grant."""
        if self.answer is None or self.answered is None:
            return "open"
        if self.allowed and self.answer.scope != "once":
            return "granted"
        if self.used is not None:
            return "used"
        if not self.answer.allowed:
            return "denied"
        # A clock that was set back must not extend an approval.
        return "approved" if 0 <= time.time() - self.answered < self.request.expires else "expired"

    def as_dict(self) -> dict[str, Any]:
        """Return the request and its answer as data."""
        answer = None if self.answer is None else asdict(self.answer)
        return {"request": self.request.as_dict(), "answer": answer, "answered": self.answered, "used": self.used}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the stored request of which this is the data."""
        answer = None if data["answer"] is None else Approval(**data["answer"])
        request = ApprovalRequest.from_dict(data["request"])
        return cls(request=request, answer=answer, answered=data["answered"], used=data["used"])

    def as_decision(self) -> dict[str, Any]:
        """Return the answer as ledger data: who answered, when, and what was shown."""
        answer = self.answer or Approval("deny", by="host")
        request = self.request
        scope = {"scope": answer.scope} if answer.allowed else {}
        shown = f"shown: {request.preview[:_MAX_SHOWN]}" if request.preview else ""
        note = "; ".join(filter(None, (answer.reason, shown)))
        return {
            "by": answer.by,
            "said": "approve" if answer.allowed else "refuse",
            **scope,
            **({"note": note} if note else {}),
            "request": request.id,
            "time": self.answered,
        }
