"""A request as it was asked for, and each one that is sent for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import field, frozen
from sideband.ops import OpContext

from .._addresses._url import RequestTarget, parse_url
from .._models import BodyParams, DownloadParams, FetchBlobParams, SessionRequestParams, UrlParams
from ._bodies import Body
from ._content import body_of, target_of
from ._headers import with_idempotency_key

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})


@frozen
class RequestPlan:
    """A request as asked for. The arguments are those of the ops, in the form that is sent.

    Args:
        content_type: of the body, unless the skill's headers name one.
        file: where a download is written, for the grant.
    """

    method: str
    target: RequestTarget
    user_agent: str
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    cookies: Mapping[str, str] = field(factory=dict, repr=False)
    content: Body | None = field(default=None, repr=False)
    content_type: str | None = None
    auth: str | None = None
    timeout: float = 30.0
    http2: bool = True
    follow_redirects: bool = True
    max_redirects: int = 10
    file: str | None = None


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
    target: RequestTarget
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    cookies: Mapping[str, str] = field(factory=dict, repr=False)
    credential: Mapping[str, str] = field(factory=dict, repr=False)
    content: Body | None = field(default=None, repr=False)


async def plan_of(
    params: UrlParams | SessionRequestParams | DownloadParams | FetchBlobParams,
    ctx: OpContext,
    *,
    method: str,
    user_agent: str,
    seconds: float,
    http2: bool,
    locate: Callable[[str], RequestTarget] = parse_url,
    file: str | None = None,
) -> RequestPlan:
    """The request that parameters describe.

    Args:
        params: of the op.
        ctx: of the op.
        method: upper-case.
        user_agent: as configured.
        seconds: for all of it, or for one attempt in a session.
        http2: whether HTTP/2 may be agreed on.
        locate: reads the URL.
        file: where a download is written.

    Raises:
        OpParamsInvalid: something can't be written as what it is meant to be.
        OpDenied: the body is a blob, and the grant does not allow to read those.
        BlobMissing: there is no such blob.
        UrlInvalid: no request may go there.
        HeaderRefused: the idempotency key is given twice.
    """
    content: Body | None = None
    content_type: str | None = None
    if isinstance(params, BodyParams | SessionRequestParams):
        content, content_type = await body_of(params, ctx)
    return RequestPlan(
        method=method,
        target=target_of(locate(params.url), params, ctx),
        user_agent=user_agent,
        headers=with_idempotency_key(params.headers, getattr(params, "idempotency_key", None)),
        cookies=params.cookies,
        content=content,
        content_type=content_type,
        auth=params.auth,
        timeout=seconds,
        http2=http2,
        follow_redirects=params.follow_redirects,
        max_redirects=params.max_redirects,
        file=file,
    )
