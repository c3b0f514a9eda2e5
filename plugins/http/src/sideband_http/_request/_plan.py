"""The plan of a request, and the hops that are sent for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import field, frozen
from sideband.ops import OpContext

from .._addresses._url import RequestTarget, parse_url
from .._models import BodyParams, DownloadParams, FetchBlobParams, SessionRequestParams, UrlParams
from ._bodies import Body
from ._content import body_of, target_of
from ._headers import with_idempotency_key
from ._ranges import RequestedRange

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})


@frozen
class RequestPlan:
    """A request before redirects. The arguments are the parameters of the ops, converted.

    Args:
        content_type: the content type of the body, unless the headers set one.
        file: the path of a download, for the check of the grant.
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
    """A single request in a chain of redirects.

    Args:
        headers: the headers from the skill, with lower-case names.
        cookies: the cookies from the skill. Those from servers are in the jar.
        credential: the headers of the credential.
        content: the body.
        part: the part of the response body that the skill requests; ``None`` for the whole body.
    """

    method: str
    target: RequestTarget
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    cookies: Mapping[str, str] = field(factory=dict, repr=False)
    credential: Mapping[str, str] = field(factory=dict, repr=False)
    content: Body | None = field(default=None, repr=False)
    part: RequestedRange | None = None


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
    """Return the plan for the parameters of an op.

    Args:
        params: the parameters of the op.
        ctx: the context of the op.
        method: the method in upper case.
        user_agent: the configured user agent.
        seconds: the time limit of the request, or of an attempt in a session.
        http2: whether HTTP/2 may be negotiated.
        locate: the function that parses the URL.
        file: the path of a download.

    Raises:
        OpParamsInvalid: if a parameter cannot be encoded.
        OpDenied: if the body is a blob and the grant does not allow reading blobs.
        BlobMissing: if the blob does not exist.
        UrlInvalid: if the URL is invalid.
        HeaderRefused: if the idempotency key is duplicated.
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
