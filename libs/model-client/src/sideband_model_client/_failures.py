"""Map transport exceptions to provider errors."""

from __future__ import annotations

from sideband.providers import ProviderError

from ._errors import broken, insecure, is_about_tls, silent, unreachable
from ._requests import ServiceRequest


def exchange_failure(request: ServiceRequest, error: Exception, *, begun: bool) -> ProviderError | None:
    """Return the provider error for a transport exception, or ``None`` for any other exception.

    Args:
        request: the request that failed.
        error: the exception.
        begun: whether the response had begun.
    """
    import httpx  # noqa: PLC0415  slow to import; only requests need it

    access, cause = request.access, type(error).__name__
    if isinstance(error, (httpx.ConnectTimeout, httpx.PoolTimeout)):
        return silent(access, "connecting", "connect_timeout", request.connect_timeout, cause)
    if isinstance(error, httpx.TimeoutException):
        what = "waiting for more of the response" if begun else "waiting for a response"
        return silent(access, what, "idle_timeout", request.idle_timeout, cause)
    if not isinstance(error, (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError)):
        return None
    reason = str(error) or cause
    if begun:
        return broken(access, f"the connection closed during the response: {reason}", cause)
    if isinstance(error, httpx.ConnectError) and is_about_tls(error):
        return insecure(access, reason, cause)
    return unreachable(access, reason, cause)
