"""Parameters and results of the ops."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, StringConstraints, model_validator
from sideband.ops import OpParams
from sideband_confined_files import EntryKind

PathText = Annotated[str, StringConstraints(max_length=4_096)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class _FilePathParams(OpParams):
    path: PathText = Field(description="below the host's folder for files, or absolute")


class FileReadParams(_FilePathParams):
    """Parameters of `files.read`."""

    kind: Literal["text", "bytes", "blob"] = Field("text", description="what to answer: `blob` keeps it as a blob")
    offset: int = Field(0, ge=0, description="the byte to begin at")
    length: int | None = Field(None, ge=1, description="how many bytes at most; by default all that there are")


class FileWriteParams(_FilePathParams):
    """Parameters of `files.write`."""

    content: str | bytes | None = Field(None, description="what to write; text is written as UTF-8")
    blob: Digest | None = Field(None, description="the blob to write instead, by its SHA-256")
    overwrite: bool = Field(default=False, description="whether a file that is there may be replaced")
    append: bool = Field(default=False, description="add to the end of what is there")
    expected: Digest | None = Field(None, description="the SHA-256 that the file which is there must have")

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        if (self.content is None) == (self.blob is None):
            raise ValueError("give either `content` or `blob`")
        return self


class FileListParams(OpParams):
    """Parameters of `files.list`."""

    path: PathText = Field(".", description="the folder; by default the host's own for files")
    after: str = Field("", max_length=1_000, description="only names after this one: the `next` of the page before")
    limit: int | None = Field(None, ge=1, description="how many names at most")
    hidden: bool = Field(default=False, description="names that begin with a dot too")


class FileFindParams(OpParams):
    """Parameters of `files.find`."""

    pattern: Pattern = Field(description="such as `**/*.csv`: `*` and `?` within a name, `**` any folders")
    path: PathText = Field(".", description="the folder to search; by default the host's own for files")
    limit: int | None = Field(None, ge=1, description="how many paths at most")
    hidden: bool = Field(default=False, description="names that begin with a dot too")


class FileStatParams(_FilePathParams):
    """Parameters of `files.stat`."""

    digest: bool = Field(default=False, description="calculate its SHA-256 too")


class FileDeleteParams(_FilePathParams):
    """Parameters of `files.delete`."""

    expected: Digest | None = Field(None, description="the SHA-256 that the file must have")


class FolderMakeParams(_FilePathParams):
    """Parameters of `files.make_folder`."""


class FileMoveParams(_FilePathParams):
    """Parameters of `files.move`."""

    target: PathText = Field(description="its new path")
    overwrite: bool = Field(default=False, description="whether a file at the target may be replaced")
    expected: Digest | None = Field(None, description="the SHA-256 that the file must have")


class FileCopyParams(_FilePathParams):
    """Parameters of `files.copy`."""

    target: PathText = Field(description="the path of the copy")
    overwrite: bool = Field(default=False, description="whether a file at the target may be replaced")


class FileRestoreParams(_FilePathParams):
    """Parameters of `files.restore`."""

    blob: Digest | None = Field(None, description="the blob to put there; without one, the file is removed")
    expected: Digest | None = Field(None, description="the SHA-256 of what is there now; without one, nothing is")
    permissions: int | None = Field(None, ge=0, le=0o777, description="the lower nine bits of its mode")

    @model_validator(mode="after")
    def _check_some_content(self) -> Self:
        if self.blob is None and self.expected is None:
            raise ValueError("give `blob`, `expected` or both")
        return self


class FileReadResult(BaseModel):
    """What was read.

    Attributes:
        path: as capabilities call it.
        content: text or bytes; nothing if it was kept as a blob.
        size: bytes of the whole file.
        next: where to go on reading, if there is more.
        sha256: of the whole file, if all of it was read.
    """

    path: str
    content: str | bytes | None = None
    size: int
    next: int | None = None
    sha256: str | None = None


class FileWriteResult(BaseModel):
    """What was written.

    Attributes:
        path: as capabilities call it.
        size: bytes of the whole file.
        sha256: of the whole file.
        replaced: whether there was one before.
    """

    path: str
    size: int
    sha256: str
    replaced: bool


class FileListEntry(BaseModel):
    """What is known about one name. A link is never followed.

    Attributes:
        name: the last part of its path; in a search, its path below the folder that was searched.
        kind: `file`, `folder`, `link`, or `other` for pipes and devices.
        size: bytes of a file, 0 for anything else.
        modified: when its content was last changed, in seconds since 1970.
    """

    name: str
    kind: EntryKind
    size: int
    modified: float


class FileListResult(BaseModel):
    """Names in a folder, in order.

    Attributes:
        path: the folder.
        entries: what is in it.
        next: give it as `after` to get what follows; nothing if that was all.
        left_out: how many names are hidden, or are no text.
    """

    path: str
    entries: list[FileListEntry]
    next: str | None = None
    left_out: int = 0


class FileFindResult(BaseModel):
    """What a search found, folder by folder, in order.

    Attributes:
        path: the folder that was searched.
        entries: what matches, with paths below it.
        truncated: whether there may be more.
    """

    path: str
    entries: list[FileListEntry]
    truncated: bool = False


class FileStatus(BaseModel):
    """What is known about a path.

    Attributes:
        path: as capabilities call it.
        kind: `file`, `folder`, `link`, or `other` for pipes and devices.
        size: bytes of a file, 0 for anything else.
        modified: when its content was last changed, in seconds since 1970.
        permissions: the lower nine bits of its mode.
        sha256: of a file, if asked for.
    """

    path: str
    kind: EntryKind
    size: int
    modified: float
    permissions: int
    sha256: str | None = None


class FileDeleteResult(BaseModel):
    """What was deleted.

    Attributes:
        path: as capabilities call it.
        kind: `file`, or `folder` for an empty one.
        size: bytes of the file.
    """

    path: str
    kind: Literal["file", "folder"]
    size: int = 0


class FolderMakeResult(BaseModel):
    """A folder that is there.

    Attributes:
        path: as capabilities call it.
        made: whether it was not there before.
    """

    path: str
    made: bool


class FileMoveResult(BaseModel):
    """A file under its new name.

    Attributes:
        path: the old one.
        target: the new one.
        size: its bytes.
        sha256: of its content.
        replaced: whether there was a file at the target.
    """

    path: str
    target: str
    size: int
    sha256: str
    replaced: bool


class FileRestoreResult(BaseModel):
    """What was put back.

    Attributes:
        path: as capabilities call it.
        sha256: what is there now; nothing if the file was removed.
        size: its bytes.
    """

    path: str
    sha256: str | None = None
    size: int = 0
