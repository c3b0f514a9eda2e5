"""Each error code has one class, which does not change."""

import pytest
from sideband_agent._tools._error_classes import error_class

CLASSES = {
    "INVALID_ARGUMENT": ("tool.rejected", "op.params", "files.pattern", "http.url", "services.choice"),
    "NOT_FOUND": ("file.missing", "tools.skill", "model.unknown", "shell.cwd"),
    "PERMISSION_DENIED": ("op.denied", "grant.required", "tools.place", "secrets.vault_denied"),
    "SAFETY_BLOCKED": ("tool.denied", "op.egress", "agent.halted"),
    "MULTIPLE_MATCHES": ("tools.multiple_matches", "session.entry_ambiguous"),
    "NO_MATCH": ("tools.no_match",),
    "TIMEOUT": ("op.timeout", "call.timeout", "till.timeout"),
    "SANDBOX_ERROR": ("worker.exited", "worker.protocol", "isolation.unavailable", "shell.isolation"),
    "NETWORK_ERROR": ("http.connect", "provider.unreachable", "secrets.vault_unreachable"),
    "PARSE_ERROR": ("sql.syntax", "files.text", "tools.encoding"),
    "PRECONDITION_FAILED": ("tools.unread", "tools.stale", "file.changed", "tool.cancelled", "blob.too_large"),
    "UNSUPPORTED": ("op.unknown", "tools.file", "llm.unable", "undo.impossible"),
    "INTERNAL_ERROR": ("tool.failed", "op.internal", "till.exploded", ""),
}


@pytest.mark.parametrize(("name", "codes"), CLASSES.items(), ids=list(CLASSES))
def test_codes_have_their_class(name, codes):
    assert [error_class(code) for code in codes] == [name] * len(codes)
