"""Parameters and results of the ops."""

from __future__ import annotations

from base64 import b64decode
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, StringConstraints, model_validator
from sideband.ops import OpParams

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class _BlobDigestParams(OpParams):
    sha256: Digest = Field(description="the digest of its content: 64 lower-case hexadecimal digits")


class BlobPutParams(OpParams):
    """Parameters of `blobs.put`."""

    content: str | bytes | None = Field(None, description="what to keep; text is kept as UTF-8")
    base64: str | None = Field(None, description="what to keep instead, as base64")

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        if (self.content is None) == (self.base64 is None):
            raise ValueError("give either `content` or `base64`")
        if self.base64 is not None:
            b64decode(self.base64, validate=True)
        return self

    @property
    def data(self) -> bytes:
        """What to keep."""
        if isinstance(self.content, str):
            return self.content.encode()
        return b64decode(self.base64 or "") if self.content is None else self.content


class BlobGetParams(_BlobDigestParams):
    """Parameters of `blobs.get`."""

    kind: Literal["bytes", "text", "base64"] = Field("bytes", description="how to answer it")
    offset: int = Field(0, ge=0, description="the byte to begin at")
    length: int | None = Field(None, ge=1, description="how many bytes at most; by default all that there are")


class BlobStatParams(_BlobDigestParams):
    """Parameters of `blobs.stat`."""


class BlobDeleteParams(_BlobDigestParams):
    """Parameters of `blobs.delete`."""


class BlobListParams(OpParams):
    """Parameters of `blobs.list`."""

    limit: int | None = Field(None, ge=1, description="how many at most")


class BlobInfo(BaseModel):
    """A blob that is there.

    Attributes:
        sha256: the digest of its content, which is its name.
        size: its bytes.
    """

    sha256: str
    size: int


class BlobGetResult(BlobInfo):
    """What a blob holds.

    Attributes:
        content: bytes, text, or base64 as asked for.
        next: where to go on, if there is more.
    """

    content: str | bytes
    next: int | None = None


class BlobListResult(BaseModel):
    """Blobs, by digest.

    Attributes:
        blobs: those that there are.
        truncated: whether there are more.
    """

    blobs: list[BlobInfo]
    truncated: bool = False


class BlobDeleteResult(BaseModel):
    """Whether there was such a blob.

    Attributes:
        deleted: whether there was.
    """

    deleted: bool
