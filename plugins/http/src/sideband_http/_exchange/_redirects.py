"""Redirects: the next request, and which parts of the previous one it keeps."""

from __future__ import annotations

from attrs import evolve

from .._errors import RedirectUnencrypted, RedirectWithBody
from .._request._plan import Hop

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_BODY_HEADERS = ("content-type", "content-encoding", "content-language", "content-location")


def next_hop(hop: Hop, status: int, location: str | None) -> Hop | None:
    """Return the hop that a response redirects to, or ``None`` if it is not a redirect.

    The method changes as in browsers. Headers, cookies and the credential are not sent to another origin.

    Raises:
        UrlInvalid: if the location is not a valid URL.
        RedirectUnencrypted: if the redirect leads from https to http.
        RedirectWithBody: if it would send a body to another origin.
    """
    if status not in _REDIRECTS or location is None:
        return None
    target = hop.target.join(location)
    if hop.target.scheme == "https" and target.scheme == "http":
        raise RedirectUnencrypted(hop.target.origin, target.origin)
    following = evolve(hop, target=target)
    if (status == 303 and hop.method not in {"GET", "HEAD"}) or (status in {301, 302} and hop.method == "POST"):
        headers = {name: value for name, value in hop.headers.items() if name not in _BODY_HEADERS}
        following = evolve(following, method="GET", content=None, headers=headers)
    if target.origin == hop.target.origin:
        return following
    if following.content is not None:
        raise RedirectWithBody(hop.target.origin, target.origin)
    return evolve(following, headers={}, cookies={}, credential={})
