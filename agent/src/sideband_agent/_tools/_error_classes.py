"""The classes of errors: one short list for programs, into which every error code falls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

INTERNAL: Final = "INTERNAL_ERROR"

_CODES: Mapping[str, str] = {
    "agent.halted": "SAFETY_BLOCKED",
    "approval.needed": "PERMISSION_DENIED",
    "effect.in_flight": "PRECONDITION_FAILED",
    "effect.unknown": "PRECONDITION_FAILED",
    "grant.required": "PERMISSION_DENIED",
    "limit": "PRECONDITION_FAILED",
    "op.egress": "SAFETY_BLOCKED",
    "op.params": "INVALID_ARGUMENT",
    "op.revoked": "PRECONDITION_FAILED",
    "op.unknown": "UNSUPPORTED",
    "skill.refused": "PRECONDITION_FAILED",
    "tool.cancelled": "PRECONDITION_FAILED",
    "tool.denied": "SAFETY_BLOCKED",
    "tool.rejected": "INVALID_ARGUMENT",
    "tool.skipped": "PRECONDITION_FAILED",
    "tool.stopped": "PRECONDITION_FAILED",
    "tools.file": "UNSUPPORTED",
    "tools.place": "PERMISSION_DENIED",
    "tools.protected": "PERMISSION_DENIED",
    "tools.skill": "NOT_FOUND",
    "tools.skill_file": "NOT_FOUND",
}
"""The classes of single codes."""

_FIRST: Mapping[str, str] = dict.fromkeys(("isolation", "worker"), "SANDBOX_ERROR")
"""The classes of all other codes with this first part."""

_LAST: Mapping[str, str] = {
    **dict.fromkeys(("missing", "unknown", "gone", "not_found", "entry", "cwd"), "NOT_FOUND"),
    **dict.fromkeys(
        ("denied", "refused", "audience", "forbidden", "untrusted", "declined", "place"), "PERMISSION_DENIED"
    ),
    **dict.fromkeys(("blocked", "halted", "exposed"), "SAFETY_BLOCKED"),
    **dict.fromkeys(("matches", "ambiguous"), "MULTIPLE_MATCHES"),
    **dict.fromkeys(("no_match",), "NO_MATCH"),
    **dict.fromkeys(("timeout", "timed_out"), "TIMEOUT"),
    **dict.fromkeys(("isolation", "start"), "SANDBOX_ERROR"),
    **dict.fromkeys(
        ("network", "connect", "unreachable", "proxy", "tls", "transport", "protocol", "stream", "redirects"),
        "NETWORK_ERROR",
    ),
    **dict.fromkeys(
        ("syntax", "parse", "text", "encoding", "format", "damaged", "corrupt", "schema", "content"), "PARSE_ERROR"
    ),
    **dict.fromkeys(
        (
            *("argument", "arguments", "params", "value", "invalid", "pattern", "url", "header", "input", "answer"),
            *("address", "number", "name", "choice", "key", "environment"),
        ),
        "INVALID_ARGUMENT",
    ),
    **dict.fromkeys(
        (
            *("unread", "stale", "conflict", "exists", "taken", "changed", "replaced", "busy", "locked", "closed"),
            *("full", "exceeded", "spent", "limit", "readonly", "read_only", "depth"),
            *(
                "unavailable",
                "constraint",
                "parked",
                "unfinished",
                "cancelled",
                "interrupted",
                "terminated",
                "duplicate",
            ),
            *("large", "many", "size", "budget"),
        ),
        "PRECONDITION_FAILED",
    ),
    **dict.fromkeys(("unsupported", "unable", "impossible", "executable", "binary", "engine", "driver"), "UNSUPPORTED"),
}
"""The classes of codes with this last part."""


def error_class(code: str) -> str:
    """Return the class of an error code. A code without one, and no code, is ``INTERNAL_ERROR``.

    The classes are stable. Codes of other packages get theirs by their last part, such as ``timeout``.

    Example:
        >>> error_class("tools.no_match"), error_class("http.timeout"), error_class("till.exploded")
        ('NO_MATCH', 'TIMEOUT', 'INTERNAL_ERROR')
    """
    if code in _CODES:
        return _CODES[code]
    first, last = code.partition(".")[0], code.rpartition(".")[2]
    return _FIRST.get(first) or _LAST.get(last) or _LAST.get(last.rpartition("_")[2], INTERNAL)
