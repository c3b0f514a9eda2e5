"""What is sent, and what of it may go on to where a redirect leads."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

from ._bodies import Body
from ._errors import RedirectRefused
from ._url import Target

__all__ = ["Hop", "next_hop"]

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ABOUT_THE_BODY = ("content-type", "content-encoding", "content-language", "content-location")


@frozen
class Hop:
    """One request of a chain of redirects.

    Args:
        headers: what the skill set, lower-case.
        cookies: what the skill set. Those of servers are in the jar.
        credential: the headers of the credential.
        content: the body.
    """

    method: str
    target: Target
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    cookies: Mapping[str, str] = field(factory=dict, repr=False)
    credential: Mapping[str, str] = field(factory=dict, repr=False)
    content: Body | None = field(default=None, repr=False)


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
