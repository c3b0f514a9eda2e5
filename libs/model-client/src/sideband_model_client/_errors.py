"""Errors of model calls: what a status, a body and a transport exception mean, and a hint for each.

ProviderError
├── ProviderRefused         the server returned an error status, or reported an error in the response body
├── ProviderUnreachable     the connection or TLS handshake failed, or the connection closed before a response
├── ProviderTimeout         connecting, or waiting for more of the response, took too long
├── StreamBroken            the response is truncated or violates the protocol
├── InputUnsupported        the protocol does not support a part of the request (provider.input)
└── ProviderUnconfigured    a key is missing, or a key or an address is invalid

Messages are not truncated here. The host truncates them after redaction, which cannot recognize half of a secret.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from sideband.providers import (
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnconfigured,
    ProviderUnreachable,
    StreamBroken,
)

from ._access import ServiceAccess
from ._strict_json import compact, parse_json, whole_characters

_RETRYABLE = frozenset({408, 409, 425, 429})
# Error names that servers use inside a response with status 200, and the equivalent status.
_STATUS_OF = {
    "api_error": 500,
    "authentication_error": 401,
    "billing_error": 402,
    "billing_hard_limit_reached": 429,
    "context_length_exceeded": 400,
    "insufficient_quota": 429,
    "invalid_api_key": 401,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "model_not_found": 404,
    "not_found_error": 404,
    "overloaded": 503,
    "overloaded_error": 529,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "request_too_large": 413,
    "requests": 429,
    "server_error": 500,
    "service_unavailable": 503,
    "timeout": 504,
    "timeout_error": 504,
    "tokens": 429,
}
_HINTS = {
    400: "correct what the message names; check `options`, which are sent unchanged",
    402: "add credit to the account of the key",
    403: "the key has no access to this model; use another model or another key",
    408: "try again",
    413: "the request is too large for the service: shorten the conversation or remove images",
    429: "wait until the limit resets, or set `fallbacks`",
    529: "the service is overloaded: try again later, or set `fallbacks`",
}


def refused(access: ServiceAccess, status: int, body: str, headers: Mapping[str, str]) -> ProviderRefused:
    """Return the error for a response with an error status. ``ServiceReply.check`` raises it.

    Args:
        access: the access that was used.
        status: the HTTP status.
        body: the response body as text.
        headers: the response headers, with names in lower case.

    Example:
        >>> error = refused(access, 429, '{"error": {"message": "slow down"}}', {"retry-after": "7"})
        >>> error.message, error.retryable
        ('acme: HTTP 429 (Too Many Requests): slow down', True)
    """
    body = access.without_secrets(body)
    is_page = "html" in headers.get("content-type", "").lower() or body.lstrip().startswith("<")
    detail = _message_of(_error_in(_json_or_none(body))) or ("" if is_page else body.strip())
    return ProviderRefused(
        access.provider,
        _joined(f"HTTP {status}{_phrase(status)}{_no_key(access, status)}", detail),
        status=status,
        body=body,
        headers=_without_secrets(access, headers),
        hint=_hint(access, status, headers),
        retryable=_is_retryable(status, headers),
    )


def refused_inside(access: ServiceAccess, error: Any, headers: Mapping[str, str], *, body: str = "") -> ProviderRefused:
    """Return the error for a response with status 200 that reports an error in its body.

    Args:
        access: the access that was used.
        error: the reported error: an object or a string. Its type or code implies a status.
        headers: the response headers, with names in lower case.
        body: the full text of the event, if it holds more than the error.

    Example:
        >>> error = refused_inside(access, {"type": "overloaded_error", "message": "Overloaded"}, {})
        >>> error.message, error.status
        ('acme: the response reports an error: overloaded_error: Overloaded', 529)
    """
    status = _implied_status(error)
    kind, detail = error.get("type") if isinstance(error, dict) else None, _message_of(error)
    if isinstance(kind, str) and kind and detail not in {kind, ""}:
        detail = f"{kind}: {detail}"
    return ProviderRefused(
        access.provider,
        _joined(f"the response reports an error{_no_key(access, status)}", access.without_secrets(detail)),
        status=status,
        body=access.without_secrets(whole_characters(body or _text(error))),
        headers=_without_secrets(access, headers),
        hint=_hint(access, status or 0, headers),
        retryable=status is None or _is_retryable(status, {}),
    )


def not_a_model(access: ServiceAccess, what: str, body: str, headers: Mapping[str, str]) -> ProviderRefused:
    """Return the error for a server that does not speak the protocol, such as one that returns a web page.

    Args:
        access: the access that was used.
        what: a description of the response.
        body: the response body as text.
        headers: the response headers.

    Example:
        >>> not_a_model(access, "a web page", "<html>", {}).message
        'acme: https://acme.example returned a web page instead of a model response'
    """
    return ProviderRefused(
        access.provider,
        f"{access.address.url} returned {what} instead of a model response",
        status=200,
        body=access.without_secrets(body),
        headers=_without_secrets(access, headers),
        hint=f"set `base_url` to the address of the API, such as {access.service.official}",
        retryable=False,
    )


def broken(access: ServiceAccess, problem: str, cause: str = "", *, retryable: bool = True) -> StreamBroken:
    """Return the error for a response that is truncated or violates the protocol.

    Args:
        access: the access that was used.
        problem: a description of the problem.
        cause: the class name of the underlying exception.
        retryable: ``False`` if the response arrived whole: the same server would send the like again.

    Example:
        >>> broken(access, "the response was cut off").message
        'acme: the response was cut off'
    """
    return StreamBroken(
        access.provider,
        _plain(access.without_secrets(problem)),
        cause=cause,
        hint="" if retryable else f"check that {access.address.url} is the address of the API, and the model's name",
        retryable=retryable,
    )


class InputUnsupported(ProviderError, ValueError):
    """The protocol of a provider does not support a part of the request. Nothing was sent.

    Example:
        >>> InputUnsupported("acme", "small", "audio", "attach a text").message
        'acme: `small` cannot be called with audio'
    """

    code = "provider.input"

    def __init__(self, provider: str, model: str, problem: str, hint: str) -> None:
        super().__init__(provider, f"`{model}` cannot be called with {problem}", hint=hint, retryable=False)


def unreachable(access: ServiceAccess, reason: str, cause: str) -> ProviderUnreachable:
    """Return the error for a connection that failed or closed before a response began."""
    loopback = access.address.is_loopback
    return ProviderUnreachable(
        access.provider,
        f"no response from {access.address.origin}: {_plain(reason)}",
        cause=cause,
        hint="check that the server is running at this address" if loopback else "check the network and `base_url`",
        retryable=True,
    )


def insecure(access: ServiceAccess, reason: str, cause: str) -> ProviderUnreachable:
    """Return the error for a failed TLS handshake. The request was not sent."""
    return ProviderUnreachable(
        access.provider,
        f"cannot establish a secure connection to {access.address.origin}: {_plain(reason)}",
        cause=cause,
        hint=f"to trust a private certificate authority, set `ca_file`{_in_table(access)}",
        retryable=False,
    )


def silent(access: ServiceAccess, what: str, setting: str, seconds: float, cause: str) -> ProviderTimeout:
    """Return the error for a server that sent no data within the timeout."""
    return ProviderTimeout(
        access.provider,
        f"{access.address.origin} timed out after {seconds:g} s ({what})",
        cause=cause,
        hint=f"if the server is slow, increase `{setting}`{_in_table(access)}",
        retryable=True,
    )


def address_unusable(provider: str, where: str, problem: str, example: str) -> ProviderUnconfigured:
    """Return the error for an invalid address."""
    return ProviderUnconfigured(
        provider, f"invalid `{where}`: {problem}", hint=f"set {where} to an address such as {example}, or unset it"
    )


def key_missing(provider: str, origin: str, reasons: Iterable[str], hint: str, cause: str) -> ProviderUnconfigured:
    """Return the error for an address for which no key was found."""
    details = "; ".join(reasons)
    return ProviderUnconfigured(
        provider, f"no key for {origin}{f' ({details})' if details else ''}", hint=hint, cause=cause
    )


def key_unusable(provider: str, where: str, problem: str, hint: str, cause: str = "") -> ProviderUnconfigured:
    """Return the error for an invalid key, or for a configured key that is missing."""
    return ProviderUnconfigured(provider, f"cannot use the key {where}: {problem}", hint=hint, cause=cause)


def is_about_tls(error: BaseException) -> bool:
    """Return whether TLS caused a connection error."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _hint(access: ServiceAccess, status: int, headers: Mapping[str, str]) -> str:
    if 300 <= status < 400:
        target = _plain(access.without_secrets(headers.get("location", ""))) or "missing location"
        return f"redirects are not followed: set `base_url` to the target ({target})"
    if status == 401:
        return access.key_hint or "the service seems to require a key: configure one"
    if status == 403 and not access.secrets:
        return f"use another model, or {access.key_hint or 'configure a key'}"
    if status == 404:
        return (
            f"run `sideband models list` to see the models; if it lists none, check `base_url` ({access.address.url})"
        )
    default = "try again later" if status >= 500 else ""
    return access.service.hints.get(status) or _HINTS.get(status, default)


def _no_key(access: ServiceAccess, status: int | None) -> str:
    """Return the cause of a 401 without a key. What the server says, such as "invalid key", misleads then."""
    return " because no key was sent" if status == 401 and not access.secrets else ""


def _is_retryable(status: int, headers: Mapping[str, str]) -> bool:
    advice = headers.get("x-should-retry", "").strip().lower()
    if advice in {"true", "false"}:
        return advice == "true"
    return status in _RETRYABLE or status >= 500


def _in_table(access: ServiceAccess) -> str:
    return f" in [plugins.{access.plugin}]" if access.plugin else ""


def _without_secrets(access: ServiceAccess, headers: Mapping[str, str]) -> dict[str, str]:
    return {name: access.without_secrets(value) for name, value in headers.items()}


def _phrase(status: int) -> str:
    try:
        return f" ({HTTPStatus(status).phrase})"
    except ValueError:
        return ""


def _joined(what: str, detail: str) -> str:
    return f"{what}: {plain}" if (plain := _plain(detail)) else what


def _plain(text: str) -> str:
    """Return ``text`` on one line, with each non-printable character replaced by U+FFFD."""
    line = " ".join(text.split())
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in line)


def _json_or_none(body: str) -> Any:
    try:
        return parse_json(body)
    except ValueError:
        return None


def _error_in(data: Any) -> Any:
    if isinstance(data, list) and data:  # Google's servers wrap the error in a list
        data = data[0]
    if not isinstance(data, dict):
        return data
    return next((data[name] for name in ("error", "message", "detail") if data.get(name)), None)


def _message_of(error: Any) -> str:
    if isinstance(error, dict):
        error = next((error[name] for name in ("message", "msg", "detail", "code", "type") if error.get(name)), "")
    return _text(error) if error is not None else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else compact(value)


def _implied_status(error: Any) -> int | None:
    if not isinstance(error, dict):
        return None
    for name in ("status", "status_code", "code", "type"):
        value = error.get(name)
        if isinstance(value, str) and value.isdecimal() and len(value) == 3:
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
            return value
        if isinstance(value, str) and value.lower() in _STATUS_OF:
            return _STATUS_OF[value.lower()]
    return None
