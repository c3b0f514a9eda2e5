"""The errors that are specific to this family. Others are in `sideband_confined_files`: `file.refused` etc.

OpFailed
└── FilesError                    files.failed
    ├── FilesNotText(ValueError)      files.text        the content is not UTF-8
    ├── FilesPatternInvalid(ValueError)  files.pattern  a pattern to search for is not valid
    └── FilesTooMany(ValueError)      files.too_many    a search visited too many names
"""

from __future__ import annotations

from sideband.ops import OpFailed
from sideband_confined_files import (
    FileChanged,
    FileError,
    FileFailed,
    FileMissing,
    FileRefused,
    FileReplaced,
    FileTaken,
    FileTooLarge,
)


class FilesError(OpFailed):
    """An op on files failed; nothing was changed."""

    nothing_happened = True
    code = "files.failed"


class FilesNotText(FilesError, ValueError):
    """The content, or the requested part of it, is not UTF-8."""

    code = "files.text"

    def __init__(self, name: str, position: int) -> None:
        super().__init__(
            f"`{name}` is not valid UTF-8 at byte {position:,}",
            hint="set `kind` to `bytes`; a part of a text must begin at a character boundary",
        )


class FilesPatternInvalid(FilesError, ValueError):
    """A pattern to search for is not a valid regular expression."""

    code = "files.pattern"

    def __init__(self, pattern: str, problem: str) -> None:
        super().__init__(
            f"`{pattern[:200]}` is not a valid regular expression: {problem}",
            hint="escape special characters with a backslash, or set `literal`; RE2 has no backreferences",
        )


class FilesTooMany(FilesError, ValueError):
    """A search visited too many names."""

    code = "files.too_many"

    def __init__(self, name: str, limit: int) -> None:
        super().__init__(
            f"search in `{name}` exceeds the limit of {limit:,} names",
            hint="search a smaller folder, or raise `max_visited` in `[plugins.files]`",
        )


ERRORS = (
    FileChanged,
    FileError,
    FileFailed,
    FileMissing,
    FileRefused,
    FileReplaced,
    FileTaken,
    FileTooLarge,
    FilesError,
    FilesNotText,
    FilesPatternInvalid,
    FilesTooMany,
)
"""The errors that skills can catch by class."""
