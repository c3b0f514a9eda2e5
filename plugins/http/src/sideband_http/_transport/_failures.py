"""Conversion of httpx errors to the errors of this family."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from .._addresses._url import RequestTarget
from .._errors import ConnectFailed, HttpTimeout, ProtocolFailed, ProxyFailed, TlsFailed, UrlInvalid
from .._request._plan import IDEMPOTENT


@contextmanager
def translated(method: str, target: RequestTarget, seconds: float) -> Iterator[None]:
    """Convert httpx errors to the errors of this family."""
    import httpx  # noqa: PLC0415  slow to import; only requests need it

    retryable = method in IDEMPOTENT
    try:
        yield
    except (httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        raise HttpTimeout(method, target.origin, seconds, retryable=True) from error
    except httpx.TimeoutException as error:
        raise HttpTimeout(method, target.origin, seconds, retryable=retryable) from error
    except httpx.ProxyError as error:
        raise ProxyFailed(target.origin, str(error)) from error
    except httpx.ConnectError as error:
        failure = TlsFailed if is_about_tls(error) else ConnectFailed
        raise failure(target.origin, str(error)) from error
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise UrlInvalid(target.url, str(error)) from error
    except httpx.HTTPError as error:
        reason = str(error) or type(error).__name__
        raise ProtocolFailed(method, target.origin, reason, retryable=retryable) from error


def is_about_tls(error: BaseException) -> bool:
    """Return whether TLS caused a connection error."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
