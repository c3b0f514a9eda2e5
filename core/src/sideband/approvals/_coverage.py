"""Which requests an answer, and the grant that it gave, hold for."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ..ops import Grant
from ._requests import ApprovalRequest, ApprovalScope, StoredApproval

_GRANTS = "approval-grant/"


def grants_of(request: ApprovalRequest, scope: ApprovalScope) -> str:
    """Return how the keys of the grants begin that were given to who requests this."""
    session = f"session/{request.origin.session}" if scope == "session" else "always"
    return f"{_GRANTS}{session}/{request.grantee}/"


def grant_key(request: ApprovalRequest, scope: ApprovalScope) -> str:
    """Return the key of the grant that an answer to this request gives."""
    return grants_of(request, scope) + request.id


def covers(capabilities: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether capabilities allow all that the wanted ones do."""
    return Grant.parse(capabilities).covers(Grant.parse(wanted))


def is_remembered(request: ApprovalRequest, scope: ApprovalScope) -> bool:
    """Return whether the grant is remembered in `grants.toml`, with those of skills."""
    return request.kind == "grant" and scope == "always"


def is_same_call(stored: StoredApproval, request: ApprovalRequest) -> bool:
    """Return whether the grant of a skill for one call was used by this very call, which was interrupted since."""
    used_by, asks = stored.request.origin, request.origin
    is_valid = 0 <= time.time() - (stored.answered or 0) < stored.request.expires
    is_call = asks.run is not None and (used_by.run, used_by.step) == (asks.run, asks.step)
    return request.subject.startswith("skill:") and is_call and is_valid


def is_for(answer: StoredApproval, request: ApprovalRequest) -> bool:
    """Return whether an answer holds for another request that asks the same: a no, or one that created a grant."""
    if answer.answer is None or not answer.allowed:
        return True
    scope, session = answer.answer.scope, answer.request.origin.session
    return scope == "always" or (scope == "session" and session == request.origin.session)
