"""Errors of approvals.

OpDenied
└── ApprovalNeeded                            approval.needed    there is no approver; the request is stored
SidebandError
├── ApprovalUnknown(LookupError)              approval.unknown   no request with this id is stored
├── ApprovalAnswered(RuntimeError)            approval.answered  the answer has been used
└── ApprovalRefused(ValueError)               approval.scope     the request does not offer the scope of the answer
"""

from __future__ import annotations

import json

from ..errors import SidebandError
from ..exit_codes import ExitCode
from ..ops import OpDenied
from ..ops._errors import granting
from ._requests import ApprovalRequest


class ApprovalNeeded(OpDenied):
    """An approval is needed, and no approver is available. Nothing was run. The request is stored until it is answered.

    Args:
        request: the request.
        plugin: the guard that asks.
    """

    code = "approval.needed"

    def __init__(self, request: ApprovalRequest, plugin: str | None = None) -> None:
        again = " (`sideband run --resume`)" if request.origin.session else ""
        kind, _, name = request.subject.partition(":")
        # The tools of a plugin need its grant again in their next call.
        scope = " --session" if request.kind == "grant" and kind == "plugin" and "session" in request.grants else ""
        how = f"run `sideband approvals approve {request.id}{scope}` and repeat it{again}"
        missing = request.grants.get("always", ())
        if request.kind == "grant" and kind == "plugin":
            how += f', add it to `[grants]` as "{request.subject}" = {json.dumps(missing)}'
        elif request.kind == "grant" and (options := granting(missing)):
            how += ", pass " + options.replace("--grant '", f"--grant '{name}=")
        super().__init__(
            request.subject,
            f"it needs approval, and no approver is available: {request.question}",
            hint=f"{how}, use a terminal, or pass --yes",
            plugin=plugin,
        )
        self.request = request


class ApprovalUnknown(SidebandError, LookupError):
    """No request with this id is stored: it was never asked, its run was cancelled, or it is too old."""

    code = "approval.unknown"
    exit_code = ExitCode.USAGE

    def __init__(self, request: str) -> None:
        super().__init__(
            f"no request for approval `{request[:80]}` is stored", hint="run `sideband approvals list` to list them"
        )


class ApprovalAnswered(SidebandError, RuntimeError):
    """The answer to the request has been used, so it cannot be changed."""

    code = "approval.answered"

    def __init__(self, request: str) -> None:
        super().__init__(
            f"the answer to the request `{request}` has been used",
            hint=f"if it is requested again, it is asked again; `sideband approvals deny {request}` revokes a grant",
        )


class ApprovalRefused(SidebandError, ValueError):
    """The answer has a scope that the request does not offer. It was not stored."""

    code = "approval.scope"
    exit_code = ExitCode.USAGE

    def __init__(self, request: ApprovalRequest, scope: str) -> None:
        offered = ", ".join(f"`{one}`" for one in ("once", *request.grants))
        super().__init__(
            f"the request `{request.id}` does not offer the scope `{scope}`",
            hint=f"answer with one of its scopes: {offered}",
        )
