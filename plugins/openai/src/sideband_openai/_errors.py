"""How this provider fails: the errors of ``sideband.providers``, with what its servers say and what can be done.

ProviderError
├── ProviderRefused         the server answered with a status, or with an error inside its answer
├── ProviderUnreachable     no connection, no secure one, or it broke off before an answer
├── ProviderTimeout         no connection, or nothing more of an answer, for too long
├── StreamBroken            the answer is cut, or is not what its protocol says
└── ProviderUnconfigured    a key is missing, or an address can't be used
"""

from __future__ import annotations

from collections.abc import Mapping
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
from sideband.strict_json import parse_json, whole_characters

from ._access import Access

__all__ = [
    "broken",
    "insecure",
    "not_a_model",
    "not_supported",
    "refused",
    "refused_inside",
    "silent",
    "unreachable",
    "unusable_address",
]

_LONGEST_MESSAGE = 500
_RETRYABLE = frozenset({408, 409, 425, 429})
# What servers call the errors that they put into an answer which began well, and the status that says the same.
_STATUS_OF = {
    "api_error": 500,
    "authentication_error": 401,
    "billing_hard_limit_reached": 429,
    "context_length_exceeded": 400,
    "insufficient_quota": 429,
    "invalid_api_key": 401,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "model_not_found": 404,
    "not_found_error": 404,
    "overloaded": 503,
    "overloaded_error": 503,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "server_error": 500,
    "service_unavailable": 503,
    "timeout": 504,
    "tokens": 429,
    "requests": 429,
}


def refused(access: Access, status: int, body: str, headers: Mapping[str, str]) -> ProviderRefused:
    """The server answered with this status."""
    body = access.without_secrets(body)
    said = _said(_error_in(_json_or_none(body))) or (body.strip() if "html" not in _kind(headers) else "")
    return ProviderRefused(
        access.provider,
        _sentence(f"status {status}{_phrase(status)}", said),
        status=status,
        body=body,
        headers=headers,
        hint=_hint(access, status, headers),
        retryable=status in _RETRYABLE or status >= 500,
    )


def refused_inside(access: Access, error: Any, headers: Mapping[str, str]) -> ProviderRefused:
    """The server began to answer, and then told an error.

    Args:
        access: where it was asked.
        error: what stands under ``error``: an object, or a text.
        headers: those of the answer.
    """
    status = _implied_status(error)
    said = access.without_secrets(_said(error))
    return ProviderRefused(
        access.provider,
        _sentence("an error instead of an answer", said),
        status=status,
        body=access.without_secrets(whole_characters(_text(error))),
        headers=headers,
        hint=_hint(access, status or 0, headers),
        retryable=status is None or status in _RETRYABLE or status >= 500,
    )


def not_a_model(access: Access, what: str, body: str, headers: Mapping[str, str]) -> ProviderRefused:
    """Something answered that does not speak this protocol, a web page for instance."""
    return ProviderRefused(
        access.provider,
        f"{access.address.url} answered with {what} instead of a model's answer",
        status=200,
        body=access.without_secrets(body),
        headers=headers,
        hint="set `base_url` to the address of the API itself, mostly with `/v1` at its end",
        retryable=False,
    )


def unreachable(access: Access, reason: str, cause: str) -> ProviderUnreachable:
    """There is no connection, or it broke off before an answer began."""
    hint = "is the server running, and at this address?" if access.address.is_loopback else "check the network"
    return ProviderUnreachable(
        access.provider,
        f"no answer from {access.address.origin}: {_plain(reason)}",
        cause=cause,
        hint=hint,
        retryable=True,
    )


def insecure(access: Access, reason: str, cause: str) -> ProviderUnreachable:
    """The server could not prove who it is. Nothing was sent."""
    return ProviderUnreachable(
        access.provider,
        f"no secure connection to {access.address.origin}: {_plain(reason)}",
        cause=cause,
        hint="trust a private certificate authority with `ca_file` under [plugins.openai]",
        retryable=False,
    )


def silent(access: Access, what: str, seconds: float, cause: str) -> ProviderTimeout:
    """Nothing came for too long."""
    return ProviderTimeout(
        access.provider,
        f"{what} from {access.address.origin} within {seconds:g} s",
        cause=cause,
        hint="raise `connect_timeout` or `idle_timeout` under [plugins.openai] if it is only slow",
        retryable=True,
    )


def broken(access: Access, problem: str, cause: str = "") -> StreamBroken:
    """The answer is not whole, or not what the protocol says."""
    return StreamBroken(access.provider, _plain(access.without_secrets(problem)), cause=cause, retryable=True)


def not_supported(access: Access, what: str, hint: str) -> ProviderError:
    """The request asks for something that this protocol does not have."""
    return ProviderError(access.provider, what, hint=hint, retryable=False)


def unusable_address(provider: str, variable: str, problem: str) -> ProviderUnconfigured:
    """The address in the environment is none."""
    return ProviderUnconfigured(
        provider, f"`{variable}` can't be used: {problem}", hint=f"set {variable} to https://HOST/v1, or unset it"
    )


def _hint(access: Access, status: int, headers: Mapping[str, str]) -> str:
    if status in {401, 403}:
        return f"check the key: {access.key_source}" if access.key_source else "it seems to need a key: configure it"
    if status == 404:
        return f"`sideband models list` shows the models; the address is {access.address.url}"
    if 300 <= status < 400:
        return f"redirects are not followed: set `base_url` to where it leads ({_plain(headers.get('location', ''))})"
    return ""


def _phrase(status: int) -> str:
    try:
        return f" ({HTTPStatus(status).phrase})"
    except ValueError:
        return ""


def _sentence(what: str, said: str) -> str:
    return f"{what}: {_plain(said)}" if said else what


def _plain(text: str) -> str:
    """``text`` on one line, without what can't be seen, and not too long."""
    line = " ".join(text.split())
    shown = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in line)
    return shown if len(shown) <= _LONGEST_MESSAGE else shown[:_LONGEST_MESSAGE] + "…"


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
    from json import dumps  # noqa: PLC0415  errors are rare

    return value if isinstance(value, str) else dumps(value, ensure_ascii=False)


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


def _kind(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").lower()
