"""What the ops take and answer."""

from __future__ import annotations

import re
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

MEBIBYTE = 1024 * 1024
LONGEST_REQUEST = 600.0
LONGEST_DOWNLOAD = 6 * 3600.0

_METHOD = re.compile(r"[A-Z][A-Z-]{0,19}\Z")

Scalar = str | bool | int | float
Values = dict[str, Scalar | list[Scalar] | None]
Seconds = Annotated[float, Field(gt=0, le=LONGEST_REQUEST, allow_inf_nan=False)]
MaxBytes = Annotated[int, Field(gt=0, le=64 * MEBIBYTE)]
MaxRedirects = Annotated[int, Field(ge=0, le=30)]
Text = Annotated[str, Field(max_length=16_384)]
Id = Annotated[str, Field(max_length=100)]


def _method(text: str) -> str:
    method = text.upper()
    if not _METHOD.match(method) or method in {"CONNECT", "TRACE"}:
        raise ValueError("not a method that can be sent")
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
        description="How often it is repeated: if it reached nobody; or, with an idempotent method or an "
        "`idempotency_key`, if it broke off, timed out or was answered with 429, 502, 503 or 504.",
    )
    retry_delay: float = Field(
        default=2.0,
        ge=0,
        le=60,
        allow_inf_nan=False,
        description="Seconds before the first repetition, doubled each time, and up to a half more by chance. "
        "A Retry-After of the server is obeyed, if there is time for it.",
    )


class Fetch(_HttpParams):
    """What every request understands."""

    params: Values = Field(
        default={}, description="Pairs for the query; a list repeats its name, null leaves it out, true is `true`."
    )
    headers: dict[str, str] = Field(default={}, description="Headers; those that frame a message can't be set.")
    cookies: dict[str, str] = Field(default={}, description="Cookies for this origin only.")
    auth: str | None = Field(
        default=None,
        max_length=200,
        description="Name of a stored credential; the host attaches it, bound to the origin.",
    )
    follow_redirects: bool = Field(default=True, description="Whether redirects are followed, each within the grant.")
    max_redirects: MaxRedirects = Field(default=10, description="How many redirects are followed.")


class UrlParams(Fetch, _Repeating):
    """A request without a body."""

    url: Text = Field(description="An absolute http or https URL.")
    timeout: Seconds = Field(default=30.0, description="Seconds for all of it: redirects, body, repetitions.")
    max_bytes: MaxBytes = Field(default=10 * MEBIBYTE, description="The largest body accepted, decompressed.")
    http2: bool = Field(default=True, description="Whether HTTP/2 may be agreed on with the server (https only).")


class _Content(_HttpParams):
    json_data: Any = Field(default=None, alias="json", description="Data to send as JSON.")
    data: Values = Field(default={}, description="Fields to send as a form.")
    body: str | bytes | None = Field(default=None, description="Text (sent as UTF-8) or bytes to send as they are.")
    body_blob: Digest | None = Field(default=None, description="A blob to send, by its SHA-256; never held in memory.")

    @model_validator(mode="after")
    def _one_body(self) -> Self:
        given = [name for name in ("json", "data", "body", "body_blob") if self.has_content(name)]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are given, but a request has one body")
        return self

    def has_content(self, name: str) -> bool:
        """Whether this one of the four was given. As JSON, ``None`` is ``null``."""
        if name == "json":
            return "json_data" in self.model_fields_set
        return name in self.model_fields_set and getattr(self, name) is not None


class BodyParams(UrlParams, _Content):
    """A request that may have a body: one of ``json``, ``data``, ``body`` and ``body_blob``."""


class _Keyed(_HttpParams):
    idempotency_key: IdempotencyKey | None = Field(
        default=None,
        description="Sent as `Idempotency-Key`, by which a server that knows it recognises a request it has had.",
    )


class SendParams(BodyParams, _Keyed):
    """A request that is not the same if it is done twice, unless the server recognises it."""


class RequestParams(SendParams):
    """A request with any method."""

    method: Method = Field(default="GET", description="The method, in any case.")


class SessionOpenParams(_Repeating):
    """What all requests of a session have in common."""

    base_url: Text | None = Field(
        default=None, description="What relative URLs are relative to; the defaults below are then for its origin only."
    )
    headers: dict[str, str] = Field(default={}, description="Headers of each request, unless it has its own.")
    cookies: dict[str, str] = Field(default={}, description="Cookies to begin with.")
    auth: str | None = Field(default=None, max_length=200, description="Name of a stored credential; needs `base_url`.")
    timeout: Seconds = Field(default=30.0, description="Seconds for one attempt, unless the request has its own.")
    http2: bool = Field(default=True, description="Whether HTTP/2 may be agreed on with the server (https only).")

    @model_validator(mode="after")
    def _auth_has_an_origin(self) -> Self:
        if self.auth is not None and self.base_url is None:
            raise ValueError("auth of a session needs base_url: a credential belongs to an origin")
        return self


class SessionRequestParams(Fetch, _Content, _Keyed):
    """A request in a session."""

    session_id: Id = Field(description="What http.session_open answered.")
    url: Text = Field(description="An absolute URL, or one relative to the session's `base_url`.")
    method: Method = Field(default="GET", description="The method, in any case.")
    timeout: Seconds | None = Field(default=None, description="Seconds for one attempt; the session's if not given.")
    max_bytes: MaxBytes = Field(default=10 * MEBIBYTE, description="The largest body accepted, decompressed.")


class SessionCloseParams(_HttpParams):
    """Which session to close."""

    session_id: Id = Field(description="What http.session_open answered.")


class _LargeParams(Fetch):
    url: Text = Field(description="An absolute http or https URL.")
    timeout: Annotated[float, Field(gt=0, le=LONGEST_DOWNLOAD, allow_inf_nan=False)] = Field(
        default=600.0, description="Seconds for the whole download."
    )
    max_bytes: Annotated[int, Field(gt=0, le=64 * 1024 * MEBIBYTE)] = Field(
        default=1024 * MEBIBYTE, description="The largest body accepted, decompressed."
    )
    http2: bool = Field(default=True, description="Whether HTTP/2 may be agreed on with the server (https only).")


class DownloadParams(_LargeParams):
    """A GET request whose body becomes a file."""

    path: str = Field(max_length=1024, description="Where to write, relative to the host's folder for files.")
    overwrite: bool = Field(default=False, description="Whether a file that is there may be replaced.")


class FetchBlobParams(_LargeParams):
    """A GET request whose body becomes a blob."""


# A field of that name hides the type from the annotations after it.
_Bytes = bytes


class Redirect(TypedDict):
    """One redirect that was followed."""

    status: int
    url: str


class Response(TypedDict):
    """What the server answered.

    ``headers`` have lower-case names; those that came several times are joined with a comma. ``set-cookie`` is not
    among them: cookies stay with the host, in the session. ``body`` is the text, or ``None`` if it is none; ``bytes``
    then holds it. ``json`` is parsed if the content type says so and it is proper JSON, else ``None``; a JSON text of
    more than 4 MiB is given as ``json`` only.
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
    elapsed_ms: float


class HttpSession(TypedDict):
    """An open session."""

    session_id: str


class HttpSessionClosed(TypedDict):
    """A session that was open until now."""

    closed: bool


class Download(TypedDict):
    """What became of a download. Only a 2xx answer becomes a file; ``path`` and ``sha256`` are else ``None``."""

    status: int
    ok: bool
    url: str
    headers: dict[str, str]
    path: str | None
    bytes: int
    sha256: str | None
    redirects: list[Redirect]
    elapsed_ms: float


class FetchedBlob(TypedDict):
    """What became of a body that was to be a blob. Only a 2xx answer becomes one; ``sha256`` is else ``None``."""

    status: int
    ok: bool
    url: str
    headers: dict[str, str]
    bytes: int
    sha256: str | None
    redirects: list[Redirect]
    elapsed_ms: float
