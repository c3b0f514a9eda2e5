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

    content: str | bytes | None = Field(default=None, description="the content; text is stored as UTF-8")
    base64: str | None = Field(default=None, description="the content as base64, instead of `content`")

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        if (self.content is None) == (self.base64 is None):
            raise ValueError("pass either `content` or `base64`")
        if self.base64 is not None:
            b64decode(self.base64, validate=True)
        return self

    @property
    def data(self) -> bytes:
        """The content as bytes."""
        if isinstance(self.content, str):
            return self.content.encode()
        return b64decode(self.base64 or "") if self.content is None else self.content


class BlobGetParams(_BlobDigestParams):
    """Parameters of `blobs.get`."""

    kind: Literal["bytes", "text", "base64"] = Field(default="bytes", description="the form of the result")
    offset: int = Field(default=0, ge=0, description="the first byte")
    length: int | None = Field(default=None, ge=1, description="the maximum number of bytes; by default all")


class BlobStatParams(_BlobDigestParams):
    """Parameters of `blobs.stat`."""


class BlobDeleteParams(_BlobDigestParams):
    """Parameters of `blobs.delete`."""


class BlobListParams(OpParams):
    """Parameters of `blobs.list`."""

    limit: int | None = Field(default=None, ge=1, description="the maximum number of blobs")


class BlobInfo(BaseModel):
    """A stored blob.

    Attributes:
        sha256: the digest of its content, which is its name.
        size: its size in bytes.
    """

    sha256: str
    size: int


class BlobGetResult(BlobInfo):
    """The content of a blob or of a part of it.

    Attributes:
        content: bytes, text or base64, as requested.
        next: the offset of the rest, if there is more.
    """

    content: str | bytes
    next: int | None = None


class BlobListResult(BaseModel):
    """Blobs, sorted by digest.

    Attributes:
        blobs: the blobs.
        truncated: whether there are more.
    """

    blobs: list[BlobInfo]
    truncated: bool = False


class BlobDeleteResult(BaseModel):
    """The result of a deletion.

    Attributes:
        deleted: whether the blob existed.
    """

    deleted: bool
