"""How model calls fail: what a status, a body and an exception of the transport mean, and what can be done.

ProviderError
├── ProviderRefused         the server answered with a status, or with an error inside its answer
├── ProviderUnreachable     there is no connection, no secure one, or it broke off before an answer
├── ProviderTimeout         there is no connection, or nothing more of an answer, for too long
├── StreamBroken            the answer is cut, or is not what its protocol says
└── ProviderUnconfigured    a key is missing, or a key or an address can't be used

Messages are not cut here. The host cuts them once all secrets are out of them: it does not recognise half of one.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from sideband.providers import (
    ProviderRefused,
    ProviderTimeout,
    ProviderUnconfigured,
    ProviderUnreachable,
    StreamBroken,
)

from ._access import ServiceAccess
from ._strict_json import compact, parse_json, whole_characters

_RETRYABLE = frozenset({408, 409, 425, 429})
# What servers call the errors that they put into an answer which began well, and the status that says the same.
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
    400: "the message says what the service does not take; `options` are sent as they are",
    402: "add credit to the account that the key belongs to",
    403: "the key may not use this model; use another model or another key",
    408: "try it again",
    413: "the request is larger than the service takes: make the conversation shorter, or leave images out",
    429: "wait until the limit resets, or set `fallbacks`",
    529: "the service is overloaded: try it later, or set `fallbacks`",
}


def refused(access: ServiceAccess, status: int, body: str, headers: Mapping[str, str]) -> ProviderRefused:
    """Return the error for an answer with this status. ``ServiceReply.check`` raises it.

    Args:
        access: how the service was reached.
        status: the HTTP status.
        body: what the server said, as text.
        headers: the headers of the answer, with names in lower case.

    Example:
        >>> error = refused(access, 429, '{"error": {"message": "slow down"}}', {"retry-after": "7"})
        >>> error.message, error.retryable
        ('acme: HTTP 429 (Too Many Requests): slow down', True)
    """
    body = access.without_secrets(body)
    is_page = "html" in headers.get("content-type", "").lower() or body.lstrip().startswith("<")
    said = _said(_error_in(_json_or_none(body))) or ("" if is_page else body.strip())
    return ProviderRefused(
        access.provider,
        _sentence(f"HTTP {status}{_phrase(status)}", said),
        status=status,
        body=body,
        headers=_without_secrets(access, headers),
        hint=_hint(access, status, headers),
        retryable=_is_retryable(status, headers),
    )


def refused_inside(access: ServiceAccess, error: Any, headers: Mapping[str, str], *, body: str = "") -> ProviderRefused:
    """Return the error for an answer that began well and then told of an error.

    Args:
        access: how the service was reached.
        error: what the answer told: an object, or a text. Its type or code implies a status.
        headers: the headers of the answer, with names in lower case.
        body: all that the event said, if it said more.

    Example:
        >>> error = refused_inside(access, {"type": "overloaded_error", "message": "Overloaded"}, {})
        >>> error.message, error.status
        ('acme: an error instead of an answer: overloaded_error: Overloaded', 529)
    """
    status = _implied_status(error)
    kind, said = error.get("type") if isinstance(error, dict) else None, _said(error)
    named = f"{kind}: {said}" if isinstance(kind, str) and kind and said not in {kind, ""} else said
    return ProviderRefused(
        access.provider,
        _sentence("an error instead of an answer", access.without_secrets(named)),
        status=status,
        body=access.without_secrets(whole_characters(body or _text(error))),
        headers=_without_secrets(access, headers),
        hint=_hint(access, status or 0, headers),
        retryable=status is None or _is_retryable(status, {}),
    )


def not_a_model(access: ServiceAccess, what: str, body: str, headers: Mapping[str, str]) -> ProviderRefused:
    """Return the error for an answer of something that does not speak the protocol, a web page for instance.

    Args:
        access: how the service was reached.
        what: what the answer is.
        body: what the server said, as text.
        headers: the headers of the answer.

    Example:
        >>> not_a_model(access, "a web page", "<html>", {}).message
        "acme: https://acme.example answered with a web page instead of a model's answer"
    """
    return ProviderRefused(
        access.provider,
        f"{access.address.url} answered with {what} instead of a model's answer",
        status=200,
        body=access.without_secrets(body),
        headers=_without_secrets(access, headers),
        hint=f"set `base_url` to the address of the API itself, in the form of {access.service.official}",
        retryable=False,
    )


def broken(access: ServiceAccess, problem: str, cause: str = "") -> StreamBroken:
    """Return the error for an answer that is not whole, or not what its protocol says.

    Args:
        access: how the service was reached.
        problem: what is wrong with the answer.
        cause: the name of the class of the exception behind it.

    Example:
        >>> broken(access, "the answer ended before its end").message
        'acme: the answer ended before its end'
    """
    return StreamBroken(access.provider, _plain(access.without_secrets(problem)), cause=cause, retryable=True)


def unreachable(access: ServiceAccess, reason: str, cause: str) -> ProviderUnreachable:
    """Return the error for a connection that can't be made, or broke off before an answer began."""
    loopback = access.address.is_loopback
    return ProviderUnreachable(
        access.provider,
        f"no answer from {access.address.origin}: {_plain(reason)}",
        cause=cause,
        hint="is the server running, and at this address?" if loopback else "check the network, and `base_url`",
        retryable=True,
    )


def insecure(access: ServiceAccess, reason: str, cause: str) -> ProviderUnreachable:
    """Return the error for a server that could not prove its identity. Nothing was sent."""
    return ProviderUnreachable(
        access.provider,
        f"no secure connection to {access.address.origin}: {_plain(reason)}",
        cause=cause,
        hint=f"trust a private certificate authority with `ca_file`{_below(access)}",
        retryable=False,
    )


def silent(access: ServiceAccess, what: str, setting: str, seconds: float, cause: str) -> ProviderTimeout:
    """Return the error for a server that sent nothing for too long."""
    return ProviderTimeout(
        access.provider,
        f"{access.address.origin} was silent for {seconds:g} s ({what})",
        cause=cause,
        hint=f"raise `{setting}`{_below(access)} if it is only slow",
        retryable=True,
    )


def address_unusable(provider: str, where: str, problem: str, example: str) -> ProviderUnconfigured:
    """Return the error for an address that can't be used."""
    return ProviderUnconfigured(
        provider, f"`{where}` can't be used: {problem}", hint=f"set {where} to an address like {example}, or unset it"
    )


def key_missing(provider: str, origin: str, reasons: Iterable[str], hint: str, cause: str) -> ProviderUnconfigured:
    """Return the error for an address without a key."""
    told = "; ".join(reasons)
    return ProviderUnconfigured(
        provider, f"there is no key for {origin}{f' ({told})' if told else ''}", hint=hint, cause=cause
    )


def key_unusable(provider: str, where: str, problem: str, hint: str, cause: str = "") -> ProviderUnconfigured:
    """Return the error for a key that can't be used, or that was named and is missing."""
    return ProviderUnconfigured(provider, f"the key {where} can't be used: {problem}", hint=hint, cause=cause)


def is_about_tls(error: BaseException) -> bool:
    """Tell whether an error of a connection comes from TLS."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _hint(access: ServiceAccess, status: int, headers: Mapping[str, str]) -> str:
    if 300 <= status < 400:
        place = _plain(access.without_secrets(headers.get("location", ""))) or "elsewhere"
        return f"redirects are not followed: set `base_url` to the address that it points to ({place})"
    if status == 401:
        return access.key_hint or "it seems to need a key: configure it"
    if status == 403 and not access.secrets:
        return f"use another model, or {access.key_hint or 'configure a key'}"
    if status == 404:
        return f"`sideband models list` shows the models; check `base_url` ({access.address.url}) if it shows none"
    usual = "try it again later" if status >= 500 else ""
    return access.service.hints.get(status) or _HINTS.get(status, usual)


def _is_retryable(status: int, headers: Mapping[str, str]) -> bool:
    told = headers.get("x-should-retry", "").strip().lower()
    if told in {"true", "false"}:
        return told == "true"
    return status in _RETRYABLE or status >= 500


def _below(access: ServiceAccess) -> str:
    return f" under [plugins.{access.plugin}]" if access.plugin else ""


def _without_secrets(access: ServiceAccess, headers: Mapping[str, str]) -> dict[str, str]:
    return {name: access.without_secrets(value) for name, value in headers.items()}


def _phrase(status: int) -> str:
    try:
        return f" ({HTTPStatus(status).phrase})"
    except ValueError:
        return ""


def _sentence(what: str, said: str) -> str:
    return f"{what}: {plain}" if (plain := _plain(said)) else what


def _plain(text: str) -> str:
    """Return ``text`` on one line, with a sign in place of each character that can't be seen."""
    line = " ".join(text.split())
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in line)


def _json_or_none(body: str) -> Any:
    try:
        return parse_json(body)
    except ValueError:
        return None


def _error_in(data: Any) -> Any:
    if isinstance(data, list) and data:  # Google's servers put it into a list
        data = data[0]
    if not isinstance(data, dict):
        return data
    return next((data[name] for name in ("error", "message", "detail") if data.get(name)), None)


def _said(error: Any) -> str:
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
