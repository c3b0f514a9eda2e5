"""Parameters and results of the ops."""

from __future__ import annotations

import re
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

MEBIBYTE = 1024 * 1024
MAX_REQUEST_SECONDS = 600.0
MAX_DOWNLOAD_SECONDS = 6 * 3600.0

_METHOD = re.compile(r"[A-Z][A-Z-]{0,19}\Z")
# A server that supports TRACE or TRACK returns the request with its credentials. CONNECT opens a tunnel, and PRI begins
# HTTP/2.
UNSUPPORTED_METHODS = frozenset({"CONNECT", "PRI", "TRACE", "TRACK"})

Scalar = str | bool | int | float
Values = dict[str, Scalar | list[Scalar] | None]
Seconds = Annotated[float, Field(gt=0, le=MAX_REQUEST_SECONDS, allow_inf_nan=False)]
MaxBytes = Annotated[int, Field(gt=0, le=64 * MEBIBYTE)]
MaxRedirects = Annotated[int, Field(ge=0, le=30)]
Text = Annotated[str, Field(max_length=16_384)]
Id = Annotated[str, Field(max_length=100)]


def _method(text: str) -> str:
    method = text.upper()
    if not _METHOD.match(method) or method in UNSUPPORTED_METHODS:
        raise ValueError("unsupported HTTP method")
    return method


Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
IdempotencyKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9._~:+/=@-]{1,255}$")]
Method = Annotated[str, AfterValidator(_method)]


class _HttpParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, serialize_by_alias=True)


class _Repeating(_HttpParams):
    retry: int = Field(
        default=0,
        ge=0,
        le=10,
        description="The maximum number of retries. A request that did not reach a server is retried; one with an "
        "idempotent method or an `idempotency_key` also after a lost connection, a timeout, or status 429, 502, 503 "
        "or 504.",
    )
    retry_delay: float = Field(
        default=2.0,
        ge=0,
        le=60,
        allow_inf_nan=False,
        description="The delay before the first retry in seconds. It doubles each time, with up to 50 % random "
        "jitter. A Retry-After header is honored if enough time remains.",
    )


class Fetch(_HttpParams):
    """The parameters that all requests share."""

    params: Values = Field(
        default={}, description="Query parameters. A list repeats its name, null omits it, true becomes `true`."
    )
    headers: dict[str, str] = Field(
        default={}, description="Headers. Those that control message framing cannot be set."
    )
    cookies: dict[str, str] = Field(default={}, description="Cookies, sent to this origin only.")
    auth: str | None = Field(
        default=None,
        max_length=200,
        description="The name of a stored credential. The host attaches it if it is bound to the origin.",
    )
    follow_redirects: bool = Field(
        default=True, description="Whether to follow redirects. Each is checked against the grant."
    )
    max_redirects: MaxRedirects = Field(default=10, description="The maximum number of redirects to follow.")


class UrlParams(Fetch, _Repeating):
    """A request without a body."""

    url: Text = Field(description="An absolute http or https URL.")
    timeout: Seconds = Field(
        default=30.0, description="The time limit in seconds, including redirects, the body and retries."
    )
    max_bytes: MaxBytes = Field(default=10 * MEBIBYTE, description="The maximum size of the decompressed body.")
    http2: bool = Field(default=True, description="Whether HTTP/2 may be negotiated (https only).")


class _Content(_HttpParams):
    json_data: Any = Field(default=None, alias="json", description="Data to send as JSON.")
    data: Values = Field(default={}, description="Form fields to send.")
    body: str | bytes | None = Field(default=None, description="Text (sent as UTF-8) or bytes to send unchanged.")
    body_blob: Digest | None = Field(
        default=None, description="The SHA-256 of a blob to send. It is streamed, not loaded into memory."
    )

    @model_validator(mode="after")
    def _one_body(self) -> Self:
        given = [name for name in ("json", "data", "body", "body_blob") if self.has_content(name)]
        if len(given) > 1:
            raise ValueError(f"conflicting bodies: {' and '.join(given)}; pass only one")
        return self

    def has_content(self, name: str) -> bool:
        """Return whether this kind of body was given. For JSON, ``None`` counts as ``null``."""
        if name == "json":
            return "json_data" in self.model_fields_set
        return name in self.model_fields_set and getattr(self, name) is not None


class BodyParams(UrlParams, _Content):
    """A request that may have a body: one of ``json``, ``data``, ``body`` or ``body_blob``."""


class _Keyed(_HttpParams):
    idempotency_key: IdempotencyKey | None = Field(
        default=None,
        description="The value of the `Idempotency-Key` header, by which a server recognizes repeated requests.",
    )


class SendParams(BodyParams, _Keyed):
    """A request that is idempotent only with an idempotency key."""


class RequestParams(SendParams):
    """A request with any method."""

    method: Method = Field(default="GET", description="The method, case-insensitive.")


class SessionOpenParams(_Repeating):
    """The defaults of a session."""

    base_url: Text | None = Field(
        default=None, description="The base of relative URLs. If set, the defaults below apply to its origin only."
    )
    headers: dict[str, str] = Field(default={}, description="Default headers.")
    cookies: dict[str, str] = Field(default={}, description="Initial cookies.")
    auth: str | None = Field(
        default=None, max_length=200, description="The name of a stored credential. Requires `base_url`."
    )
    timeout: Seconds = Field(default=30.0, description="The default time limit of an attempt in seconds.")
    http2: bool = Field(default=True, description="Whether HTTP/2 may be negotiated (https only).")

    @model_validator(mode="after")
    def _auth_has_an_origin(self) -> Self:
        if self.auth is not None and self.base_url is None:
            raise ValueError("auth requires base_url, because a credential is bound to an origin")
        return self


class SessionRequestParams(Fetch, _Content, _Keyed):
    """A request in a session."""

    session_id: Id = Field(description="The id returned by http.session_open.")
    url: Text = Field(description="An absolute URL, or one relative to the session's `base_url`.")
    method: Method = Field(default="GET", description="The method, case-insensitive.")
    timeout: Seconds | None = Field(
        default=None, description="The time limit of an attempt in seconds. Default: the session's."
    )
    max_bytes: MaxBytes = Field(default=10 * MEBIBYTE, description="The maximum size of the decompressed body.")


class SessionCloseParams(_HttpParams):
    """The session to close."""

    session_id: Id = Field(description="The id returned by http.session_open.")


class _LargeParams(Fetch):
    url: Text = Field(description="An absolute http or https URL.")
    timeout: Annotated[float, Field(gt=0, le=MAX_DOWNLOAD_SECONDS, allow_inf_nan=False)] = Field(
        default=600.0, description="The time limit of the download in seconds."
    )
    max_bytes: Annotated[int, Field(gt=0, le=64 * 1024 * MEBIBYTE)] = Field(
        default=1024 * MEBIBYTE, description="The maximum size of the decompressed body."
    )
    http2: bool = Field(default=True, description="Whether HTTP/2 may be negotiated (https only).")


class DownloadParams(_LargeParams):
    """A GET request whose body is saved as a file."""

    path: str = Field(max_length=1024, description="The path of the file, relative to the host's folder for files.")
    overwrite: bool = Field(default=False, description="Whether to replace an existing file.")


class FetchBlobParams(_LargeParams):
    """A GET request whose body is saved as a blob."""


# The field `bytes` shadows the type in the annotations after it.
_Bytes = bytes


class Redirect(TypedDict):
    """A redirect that was followed."""

    status: int
    url: str


class Response(TypedDict):
    """The response of a server.

    Names in ``headers`` are in lower case; repeated headers are joined with a comma. ``set-cookie`` is omitted, because
    cookies stay in the session of the host. ``body`` is the decoded text; if the body is not text, it is ``None`` and
    ``bytes`` is set. ``json`` is the parsed body if the content type is JSON and the body is valid, else ``None``. For
    JSON of more than 4 MiB, only ``json`` is set.
    """

    status: int
    ok: bool
    url: str
    headers: dict[str, str]
    body: str | None
    bytes: _Bytes | None
    json: Any
    body_length: int
    content_encoding: str | None
    http_version: str
    redirects: list[Redirect]


class HttpSession(TypedDict):
    """An open session."""

    session_id: str


class HttpSessionClosed(TypedDict):
    """The result of closing a session."""

    closed: bool


class Download(TypedDict):
    """The result of a download. Unless the status is 2xx, no file is written; ``path`` and ``sha256`` are ``None``."""

    status: int
    ok: bool
    url: str
    headers: dict[str, str]
    path: str | None
    bytes: int
    sha256: str | None
    redirects: list[Redirect]


class FetchedBlob(TypedDict):
    """The result of fetching a blob. Unless the status is 2xx, no blob is stored and ``sha256`` is ``None``."""

    status: int
    ok: bool
    url: str
    headers: dict[str, str]
    bytes: int
    sha256: str | None
    redirects: list[Redirect]
