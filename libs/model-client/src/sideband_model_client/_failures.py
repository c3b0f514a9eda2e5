"""What exceptions of the transport mean."""

from __future__ import annotations

from sideband.providers import ProviderError

from ._errors import broken, insecure, is_about_tls, silent, unreachable
from ._requests import ServiceRequest


def exchange_failure(request: ServiceRequest, error: Exception, *, begun: bool) -> ProviderError | None:
    """Return the error of providers for an exception of the transport; ``None`` if it is not one of those.

    Args:
        request: what was sent.
        error: what was raised.
        begun: whether the answer had begun.
    """
    import httpx  # noqa: PLC0415  slow to import; only requests need it

    access, cause = request.access, type(error).__name__
    if isinstance(error, (httpx.ConnectTimeout, httpx.PoolTimeout)):
        return silent(access, "no connection", "connect_timeout", request.connect_timeout, cause)
    if isinstance(error, httpx.TimeoutException):
        what = "nothing more of the answer" if begun else "no answer"
        return silent(access, what, "idle_timeout", request.idle_timeout, cause)
    if not isinstance(error, (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError)):
        return None
    reason = str(error) or cause
    if begun:
        return broken(access, f"the answer broke off: {reason}", cause)
    if isinstance(error, httpx.ConnectError) and is_about_tls(error):
        return insecure(access, reason, cause)
    return unreachable(access, reason, cause)
