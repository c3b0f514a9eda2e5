"""Approvals: what a person, or a program that acts for one, is asked before an effect happens or a grant is given.

All questions are of one kind, an ``ApprovalRequest``: the grant of a skill, and the question of a guard about a tool
call or about an effect. The ``Approver`` of the agent answers it, otherwise that of the host, with an ``Approval``.
Requests and answers are stored before they are used, so that they are found again after the end of the process.
"""

from ._approvals import Approvals
from ._errors import ApprovalAnswered, ApprovalNeeded, ApprovalRefused, ApprovalUnknown
from ._requests import Approval, ApprovalKind, ApprovalRequest, ApprovalScope, Approver, StoredApproval

__all__ = [
    "Approval",
    "ApprovalAnswered",
    "ApprovalKind",
    "ApprovalNeeded",
    "ApprovalRefused",
    "ApprovalRequest",
    "ApprovalScope",
    "ApprovalUnknown",
    "Approvals",
    "Approver",
    "StoredApproval",
]
