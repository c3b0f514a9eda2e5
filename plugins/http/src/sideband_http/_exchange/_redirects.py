"""Where a redirect leads, and what of a request may go on to there."""

from __future__ import annotations

from attrs import evolve

from .._errors import RedirectRefused
from .._request._plan import Hop

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ABOUT_THE_BODY = ("content-type", "content-encoding", "content-language", "content-location")


def next_hop(hop: Hop, status: int, location: str | None) -> Hop | None:
    """Where a response leads, or ``None`` if it is the answer.

    The method changes as it does in browsers. Nothing that the skill or a credential put in goes to another origin.

    Raises:
        UrlInvalid: it leads nowhere that a request may go.
        RedirectRefused: it leads out of encryption, or a body would go to another origin.
    """
    if status not in _REDIRECTS or location is None:
        return None
    target = hop.target.join(location)
    if hop.target.scheme == "https" and target.scheme == "http":
        raise RedirectRefused.downgrade(hop.target.origin, target.origin)
    following = evolve(hop, target=target)
    if (status == 303 and hop.method not in {"GET", "HEAD"}) or (status in {301, 302} and hop.method == "POST"):
        headers = {name: value for name, value in hop.headers.items() if name not in _ABOUT_THE_BODY}
        following = evolve(following, method="GET", content=None, headers=headers)
    if target.origin == hop.target.origin:
        return following
    if following.content is not None:
        raise RedirectRefused.body(hop.target.origin, target.origin)
    return evolve(following, headers={}, cookies={}, credential={})
