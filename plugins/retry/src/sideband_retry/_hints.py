"""Hints for users about failures that a retry does not fix."""

from __future__ import annotations

from datetime import UTC, datetime

from ._classes import ErrorKind
from ._failed_call import FailedCall
from ._phrases import CERTIFICATE, REFUSED

_LATER = "resume the session later, or set other models in `[agent] fallbacks`"
_ADDRESS_STATUSES = frozenset({200, 301, 302, 303, 307, 308, 404, 405})
_ADDRESS_PHRASES = ("unexpected endpoint or method", "invalid url")

_HINTS = {
    ErrorKind.RATE_LIMIT: f"the rate limit of {{provider}} is reached: {_LATER}, or request higher limits",
    ErrorKind.OVERLOADED: f"{{provider}} is overloaded: {_LATER}",
    ErrorKind.SERVER_ERROR: f"{{provider}} fails: check its status page or its log; {_LATER}",
    ErrorKind.TIMEOUT: f"{{provider}} did not respond in time: {_LATER}, or raise its timeout if it is only slow",
    ErrorKind.STREAM_BROKEN: f"responses of {{provider}} are cut off: check the network and any proxy; {_LATER}",
    ErrorKind.UNREACHABLE: "check the network and the address of {provider}",
    ErrorKind.CONTEXT_OVERFLOW: "the conversation is too long for {model} even after compaction: send a shorter "
    "message, "
    "start a new session, choose a model with a larger context window, or, if you run the server, start it with a "
    "larger context",
    ErrorKind.AUTH: "check the key of {provider}: is it set, and does it have access to this model from your region?",
    ErrorKind.AUTH_PERMANENT: "the key is wrong or revoked: create a new key on the site of {provider} and set it",
    ErrorKind.BILLING: "add credit or raise the limit on the billing page of {provider}, then resume the session",
    ErrorKind.MODEL_NOT_FOUND: "check the name of the model: `sideband models list` shows those of {provider}; a local "
    "server may have to download or load it first, or lack the memory for it",
    ErrorKind.CONTENT_BLOCKED: "{provider} blocked the content: rewrite or rewind the last message, or choose another "
    "model",
    ErrorKind.TOOL_USE_FAILED: "{model} cannot write the tool call: offer it fewer tools, or choose a model that is "
    "better at tool calls; the server's response, which `--json` shows, contains what it wrote",
    ErrorKind.FORMAT_ERROR: "{provider} rejected the request: choose a model that supports its features, such as tool "
    "calls, and check `options`; `--json` shows the server's response",
    ErrorKind.UNCONFIGURED: "set the key and the address of {provider}",
    ErrorKind.UNKNOWN: f"{{provider}} does not report a cause: check its status page or its log; {_LATER}",
}
# The hint of the provider knows which key was sent, if any, and where to set one.
_SPECIFIC = frozenset({ErrorKind.UNCONFIGURED, ErrorKind.AUTH, ErrorKind.AUTH_PERMANENT})
_ADDRESS = "check the address of {provider}: the server does not have this path; most addresses end with `/v1`"
_START = (
    "no server answers at the address of {provider}: start it (`ollama serve`, `llama-server`, `vllm serve`, "
    "LM Studio's server), or correct the address"
)

_TRUST = (
    "the certificate of {provider} is not trusted: correct the address, or add its certificate authority to the "
    "configuration of the provider's plugin"
)


def hint_of(kind: ErrorKind, failure: FailedCall, model: str) -> str:
    """Return the hint for a failure.

    Args:
        kind: its class.
        failure: the failure; its own hint is used if it is more specific.
        model: ``provider:model``.
    """
    provider = model.partition(":")[0] or "the provider"
    if failure.hint and (kind in _SPECIFIC or failure.is_final or failure.code == "provider.input"):
        return failure.hint
    return _text(kind, failure).format(provider=provider, model=model or "the model")


def parked_hint(until: float, model: str) -> str:
    """Return the hint for a limit that resets later.

    Args:
        until: the time of the reset, in seconds since 1970.
        model: ``provider:model``.
    """
    provider = model.partition(":")[0] or "the provider"
    moment = datetime.fromtimestamp(until, UTC)
    return (
        f"{provider} allows the next call at {moment:%Y-%m-%d %H:%M} UTC: resume the session then, or use another model"
    )


def _text(kind: ErrorKind, failure: FailedCall) -> str:
    if kind is ErrorKind.UNREACHABLE and failure.has(CERTIFICATE):
        return _TRUST
    if kind is ErrorKind.UNREACHABLE and failure.has(REFUSED):
        return _START
    if kind is ErrorKind.FORMAT_ERROR and (failure.status in _ADDRESS_STATUSES or failure.has(_ADDRESS_PHRASES)):
        return _ADDRESS
    return _HINTS[kind]
