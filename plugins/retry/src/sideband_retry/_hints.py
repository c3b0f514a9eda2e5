"""What a user can do about a failure that repeating does not cure."""

from __future__ import annotations

from datetime import UTC, datetime

from ._classes import ErrorKind
from ._failed_call import FailedCall
from ._phrases import CERTIFICATE, REFUSED

_LATER = "resume the session later, or name other models under `[agent] fallbacks`"
_ADDRESS_STATUSES = frozenset({200, 301, 302, 303, 307, 308, 404, 405})
_ADDRESS_PHRASES = ("unexpected endpoint or method", "invalid url")

_HINTS = {
    ErrorKind.RATE_LIMIT: f"{{provider}} allows no more calls for now: {_LATER}, or ask it for higher limits",
    ErrorKind.OVERLOADED: f"{{provider}} has too much to do: {_LATER}",
    ErrorKind.SERVER_ERROR: f"{{provider}} fails; see its status page or its log: {_LATER}",
    ErrorKind.TIMEOUT: f"{{provider}} was silent for too long: {_LATER}, or raise its timeout if it is only slow",
    ErrorKind.STREAM_BROKEN: f"answers of {{provider}} break off; check the network and any proxy in between: {_LATER}",
    ErrorKind.UNREACHABLE: "check the network and the address of {provider}",
    ErrorKind.CONTEXT_OVERFLOW: "the conversation is too long for {model} even after it was made shorter: send a "
    "shorter message, begin a new session, choose a model with a larger context window, or, if you run the server, "
    "start it with a larger context",
    ErrorKind.AUTH: "check the key of {provider}: is it set, and may it use this model, from where you are?",
    ErrorKind.AUTH_PERMANENT: "make a new key on the site of {provider}, and set it: this one is wrong or revoked",
    ErrorKind.BILLING: "add credit, or raise the limit, on the billing page of {provider}; then resume the session",
    ErrorKind.MODEL_NOT_FOUND: "check the name of the model: `sideband models list` shows those that {provider} has; a "
    "server on this machine may have to download or load it first, or lack the memory for it",
    ErrorKind.CONTENT_BLOCKED: "{provider} refuses the content: rewrite or rewind the last message, or choose another "
    "model",
    ErrorKind.FORMAT_ERROR: "{provider} does not understand the request: choose a model that can do what it asks for, "
    "such as calling tools, and check `options`; `--json` shows what the server said",
    ErrorKind.UNCONFIGURED: "set the key and the address of {provider}",
    ErrorKind.UNKNOWN: f"{{provider}} does not say what is wrong: see its status page or its log; {_LATER}",
}
_ADDRESS = "check the address of {provider}: the server that answers there has no such path; mostly it ends with `/v1`"
_START = (
    "nobody answers at the address of {provider}: start the server there (`ollama serve`, `llama-server`, "
    "`vllm serve`, LM Studio's server), or correct the address"
)

_TRUST = (
    "{provider} could not prove who it is: correct the address, or trust its certificate authority in the "
    "configuration of the provider's plugin"
)


def hint_of(kind: ErrorKind, failure: FailedCall, model: str) -> str:
    """What to do about a failure.

    Args:
        kind: its class.
        failure: the failure, whose own hint is used where it knows more.
        model: ``provider:model``.
    """
    provider = model.partition(":")[0] or "the provider"
    if kind is ErrorKind.UNCONFIGURED and failure.hint:
        return failure.hint
    return _text(kind, failure).format(provider=provider, model=model or "the model")


def parked_hint(until: float, model: str) -> str:
    """What to do about a limit that resets later.

    Args:
        until: seconds since 1970.
        model: ``provider:model``.
    """
    provider = model.partition(":")[0] or "the provider"
    moment = datetime.fromtimestamp(until, UTC)
    return (
        f"{provider} allows the next call at {moment:%Y-%m-%d %H:%M} UTC: resume the session then, or go on with "
        f"another model"
    )


def _text(kind: ErrorKind, failure: FailedCall) -> str:
    if kind is ErrorKind.UNREACHABLE and failure.has(CERTIFICATE):
        return _TRUST
    if kind is ErrorKind.UNREACHABLE and failure.has(REFUSED):
        return _START
    if kind is ErrorKind.FORMAT_ERROR and (failure.status in _ADDRESS_STATUSES or failure.has(_ADDRESS_PHRASES)):
        return _ADDRESS
    return _HINTS[kind]
