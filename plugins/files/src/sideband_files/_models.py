"""Parameters and results of the ops."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, StringConstraints, model_validator
from sideband.ops import OpParams
from sideband_confined_files import EntryKind

PathText = Annotated[str, StringConstraints(max_length=4_096)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
FolderIdentity = Annotated[str, StringConstraints(max_length=100)]
Folders = Annotated[list[FolderIdentity], Field(max_length=100)]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class FilePathParams(OpParams):
    """Parameters of an op on one path."""

    path: PathText = Field(description="relative to the host's folder for files, or absolute")


class FileReadParams(FilePathParams):
    """Parameters of `files.read`."""

    kind: Literal["text", "bytes", "blob"] = Field(
        default="text", description="the form of the result: `blob` stores a blob"
    )
    offset: int = Field(default=0, ge=0, description="the first byte")
    length: int | None = Field(default=None, ge=1, description="the maximum number of bytes; by default all")


class FileWriteParams(FilePathParams):
    """Parameters of `files.write`."""

    content: str | bytes | None = Field(default=None, description="the content; text is written as UTF-8")
    blob: Digest | None = Field(default=None, description="the SHA-256 of a blob to write instead")
    overwrite: bool = Field(default=False, description="whether an existing file may be replaced")
    append: bool = Field(default=False, description="append to an existing file")
    expected: Digest | None = Field(default=None, description="the SHA-256 that an existing file must have")

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        if (self.content is None) == (self.blob is None):
            raise ValueError("pass either `content` or `blob`")
        return self


class FileListParams(OpParams):
    """Parameters of `files.list`."""

    path: PathText = Field(default=".", description="the folder; by default the host's folder for files")
    after: str = Field(
        default="", max_length=1_000, description="list only names after this one: `next` of the previous page"
    )
    limit: int | None = Field(default=None, ge=1, description="the maximum number of names")
    hidden: bool = Field(default=False, description="include names that begin with a dot")


class FileFindParams(OpParams):
    """Parameters of `files.find`."""

    pattern: Pattern = Field(description="such as `**/*.csv`: `*` and `?` within a name, `**` for any folders")
    path: PathText = Field(default=".", description="the folder to search; by default the host's folder for files")
    limit: int | None = Field(default=None, ge=1, description="the maximum number of paths")
    hidden: bool = Field(default=False, description="include names that begin with a dot")


class FileStatParams(FilePathParams):
    """Parameters of `files.stat`."""

    digest: bool = Field(default=False, description="include the SHA-256")


class FileDeleteParams(FilePathParams):
    """Parameters of `files.delete`."""

    expected: Digest | None = Field(default=None, description="the SHA-256 that the file must have")
    folders: Folders | None = Field(default=None, description="the recorded folders on the path, for undo")


class FolderMakeParams(FilePathParams):
    """Parameters of `files.make_folder`."""

    folders: Folders | None = Field(default=None, description="the recorded folders on the path, for undo")


class FileMoveParams(FilePathParams):
    """Parameters of `files.move`."""

    target: PathText = Field(description="the new path")
    overwrite: bool = Field(default=False, description="whether an existing file may be replaced")
    expected: Digest | None = Field(default=None, description="the SHA-256 that the file must have")
    folders: Folders | None = Field(default=None, description="the recorded folders on the path, for undo")
    target_folders: Folders | None = Field(default=None, description="the recorded folders on the new path, for undo")


class FileCopyParams(FilePathParams):
    """Parameters of `files.copy`."""

    target: PathText = Field(description="the path of the copy")
    overwrite: bool = Field(default=False, description="whether an existing file may be replaced")


class FileRestoreParams(FilePathParams):
    """Parameters of `files.restore`."""

    blob: Digest | None = Field(default=None, description="the blob to restore; if omitted, the file is removed")
    expected: Digest | None = Field(
        default=None, description="the SHA-256 of the current file; if omitted, none may exist"
    )
    permissions: int | None = Field(default=None, ge=0, le=0o777, description="the permission bits")
    folders: Folders | None = Field(default=None, description="the recorded folders on the path, for undo")

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        if self.blob is None and self.expected is None:
            raise ValueError("pass `blob`, `expected` or both")
        return self


class FileReadResult(BaseModel):
    """The content of a file or of a part of it.

    Attributes:
        path: the path in the form that capabilities use.
        content: text or bytes; null if it was stored as a blob.
        size: the size of the whole file in bytes.
        next: the offset of the rest, if there is more.
        sha256: the digest of the whole file if all of it was read.
    """

    path: str
    content: str | bytes | None = None
    size: int
    next: int | None = None
    sha256: str | None = None


class FileWriteResult(BaseModel):
    """A written file.

    Attributes:
        path: the path in the form that capabilities use.
        size: the size of the whole file in bytes.
        sha256: the digest of the whole file.
        replaced: whether a file was replaced.
    """

    path: str
    size: int
    sha256: str
    replaced: bool


class FileListEntry(BaseModel):
    """The metadata of one name. Links are not followed.

    Attributes:
        name: the last component of its path; in a search, its path relative to the searched folder.
        kind: `file`, `folder`, `link`, or `other` for pipes and devices.
        size: the size of a file in bytes, otherwise 0.
        modified: the time of the last change of its content, in seconds since 1970.
    """

    name: str
    kind: EntryKind
    size: int
    modified: float


class FileListResult(BaseModel):
    """The names in a folder, sorted.

    Attributes:
        path: the folder.
        entries: the names with their metadata.
        next: the value of `after` for the next page; null on the last page.
        left_out: how many names were omitted because they are hidden or not valid text.
    """

    path: str
    entries: list[FileListEntry]
    next: str | None = None
    left_out: int = 0


class FileFindResult(BaseModel):
    """The result of a search, folder by folder, sorted.

    Attributes:
        path: the searched folder.
        entries: the matches, with paths relative to it.
        truncated: whether there may be more.
    """

    path: str
    entries: list[FileListEntry]
    truncated: bool = False


class FileStatus(BaseModel):
    """The metadata of a path.

    Attributes:
        path: the path in the form that capabilities use.
        kind: `file`, `folder`, `link`, or `other` for pipes and devices.
        size: the size of a file in bytes, otherwise 0.
        modified: the time of the last change of its content, in seconds since 1970.
        permissions: the permission bits.
        sha256: the digest of a file, if requested.
    """

    path: str
    kind: EntryKind
    size: int
    modified: float
    permissions: int
    sha256: str | None = None


class FileDeleteResult(BaseModel):
    """A deleted file or folder.

    Attributes:
        path: the path in the form that capabilities use.
        kind: `file`, or `folder` for an empty folder.
        size: the size of the file in bytes.
    """

    path: str
    kind: Literal["file", "folder"]
    size: int = 0


class FolderMakeResult(BaseModel):
    """A folder that was created or already existed.

    Attributes:
        path: the path in the form that capabilities use.
        made: whether it was created.
    """

    path: str
    made: bool


class FileMoveResult(BaseModel):
    """A moved file.

    Attributes:
        path: the old path.
        target: the new path.
        size: its size in bytes.
        sha256: its digest.
        replaced: whether a file at the target was replaced.
    """

    path: str
    target: str
    size: int
    sha256: str
    replaced: bool


class FileRestoreResult(BaseModel):
    """A restored or removed file.

    Attributes:
        path: the path in the form that capabilities use.
        sha256: the digest of the restored file; null if the file was removed.
        size: its size in bytes.
    """

    path: str
    sha256: str | None = None
    size: int = 0
