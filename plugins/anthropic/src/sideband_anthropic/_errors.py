"""How the service fails, as errors of providers that say what to do.

ProviderError
├── ProviderRefused       an HTTP status of an error, or an error within a stream
├── ProviderUnreachable   no connection
├── ProviderTimeout       silence
├── StreamBroken          an answer without its end, or one that is malformed
└── ProviderUnconfigured  no key for the address
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sideband.providers import ProviderRefused, ProviderTimeout, ProviderUnconfigured, ProviderUnreachable, StreamBroken
from sideband.strict_json import parse_object

__all__ = [
    "address_unusable",
    "broken",
    "key_missing",
    "key_unusable",
    "refused",
    "silent",
    "stream_error",
    "unreachable",
]

_RETRYABLE = frozenset({408, 409, 425, 429})
_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_HINTS = {
    400: "the message says what the service does not take; `options` and `betas` are sent as they are",
    402: "add credit to the account that the key belongs to",
    403: "the key may not use this model; use another model or another key",
    404: "`sideband models list` shows the models; check `base_url` if it shows none",
    408: "try it again",
    413: "the request is larger than the service takes: make the conversation shorter, or leave images out",
    429: "wait until the limit resets, or set `fallbacks`",
    529: "the service is overloaded: try it later, or set `fallbacks`",
}


def refused(provider: str, status: int, body: str, headers: Mapping[str, str], *, origin: str) -> ProviderRefused:
    """The service answered with an error."""
    said = _message(body)
    if 300 <= status < 400:
        hint = f"redirects are not followed: set `base_url` to the address that it points to ({_location(headers)})"
    elif status == 401:
        hint = _key_hint(provider, origin)
    else:
        hint = _HINTS.get(status, "try it again later" if status >= 500 else "")
    message = f"HTTP {status}" + (f": {said}" if said else "")
    retryable = _retryable(status, headers)
    return ProviderRefused(provider, message, status=status, body=body, headers=headers, hint=hint, retryable=retryable)


def stream_error(provider: str, data: str, error: Any, headers: Mapping[str, str]) -> ProviderRefused:
    """The service broke its answer off with an error."""
    kind = error.get("type") if isinstance(error, dict) else None
    status = _STATUS_OF_TYPE.get(str(kind))
    said = _message(data) or "it does not say why"
    named = f"{kind}: {said}" if isinstance(kind, str) else said
    hint = _HINTS.get(status or 0, "try it again later")
    retryable = status is None or _retryable(status, {})
    return ProviderRefused(
        provider,
        f"the answer broke off with an error ({_shown(named)})",
        status=status,
        body=data,
        headers=headers,
        hint=hint,
        retryable=retryable,
    )


def broken(provider: str, problem: str, *, cause: str = "") -> StreamBroken:
    """What came is not a whole answer."""
    return StreamBroken(provider, problem, cause=cause, hint="try it again", retryable=True)


def unreachable(provider: str, origin: str, error: Exception, *, tls: bool = False) -> ProviderUnreachable:
    """There is no connection."""
    reason = _shown(str(error)) or type(error).__name__
    hint = (
        "the server's certificate is not trusted: name its authority in `ca_file`"
        if tls
        else "check the network, and `base_url`"
    )
    return ProviderUnreachable(
        provider, f"no answer from {origin}: {reason}", cause=type(error).__name__, hint=hint, retryable=not tls
    )


def silent(provider: str, origin: str, seconds: float, error: Exception) -> ProviderTimeout:
    """Nothing came for too long."""
    return ProviderTimeout(
        provider,
        f"{origin} was silent for {seconds:g} s",
        cause=type(error).__name__,
        hint="try it again, or give it more time with `idle_timeout`",
        retryable=True,
    )


def address_unusable(provider: str, variable: str, error: ValueError) -> ProviderUnconfigured:
    """The environment names an address that is none."""
    return ProviderUnconfigured(
        provider, f"{variable} can't be used: {error}", hint=f"correct or unset {variable}", retryable=False
    )


def key_missing(provider: str, origin: str, *, elsewhere: str = "") -> ProviderUnconfigured:
    """There is no key for this address.

    Args:
        provider: its name.
        origin: where it would be sent.
        elsewhere: the origin that the key of the environment belongs to, if there is one.
    """
    reason = f"; the one in the environment belongs to {elsewhere}" if elsewhere else ""
    return ProviderUnconfigured(
        provider, f"there is no key for {origin}{reason}", hint=_key_hint(provider, origin), retryable=False
    )


def key_unusable(provider: str, where: str, problem: str, hint: str = "") -> ProviderUnconfigured:
    """There is a key, or should be one, and it can't be used."""
    return ProviderUnconfigured(provider, f"the key {where} can't be used: {problem}", hint=hint, retryable=False)


def _key_hint(provider: str, origin: str) -> str:
    """Where a key can be put."""
    return f"set ANTHROPIC_API_KEY, or store a key: `sideband secrets set {provider} --origin {origin}`"


def _retryable(status: int, headers: Mapping[str, str]) -> bool:
    told = next((value for name, value in headers.items() if name.lower() == "x-should-retry"), "")
    if told in {"true", "false"}:
        return told == "true"
    return status in _RETRYABLE or status >= 500


def _message(body: str) -> str:
    """What an error body says to people: that of this API, or of a proxy before it."""
    try:
        data = parse_object(body)
    except ValueError:
        return "" if body.lstrip().startswith("<") else _shown(body)
    error = data.get("error", data)
    said = error.get("message") if isinstance(error, dict) else error
    said = said or data.get("message") or data.get("detail")
    return _shown(said) if isinstance(said, str) else ""


def _location(headers: Mapping[str, str]) -> str:
    return _shown(next((value for name, value in headers.items() if name.lower() == "location"), "elsewhere"))


def _shown(text: str) -> str:
    """Foreign text on one line, without what a terminal would obey.

    It is not cut here: the host cuts messages once secrets are out of them, and does not recognise half of one.
    """
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())
