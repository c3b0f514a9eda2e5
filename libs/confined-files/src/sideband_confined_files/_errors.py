"""Errors of file access. Messages name files and never contain their content.

    OpFailed
    └── FileError                           file.error
        ├── FileRefused(PermissionError)        file.refused     the path leads out or is not a regular file
        ├── FileMissing(FileNotFoundError)      file.missing     the path does not exist
        ├── FileTaken(FileExistsError)          file.taken       the path exists and must not be replaced
        ├── FileChanged(RuntimeError)           file.changed     the content differs from what was expected
        ├── FileReplaced(RuntimeError)      file.replaced    the path leads to something else than what was recorded
        ├── FileTooLarge(ValueError)            file.too_large   the file exceeds the size limit
        └── FileFailed(OSError)                 file.failed      a system call failed: the disk is full, for instance

Nothing has changed when one of them is raised, unless the message of a ``FileFailed`` says otherwise.
"""

from __future__ import annotations

from sideband.ops import OpFailed

_SHOWN = 200


def _show(path: str) -> str:
    """Return the path for a message: on one line, without control characters, truncated."""
    text = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in path)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class FileError(OpFailed):
    """A file operation failed."""

    nothing_happened = True
    shared = True
    code = "file.error"


class FileRefused(FileError, PermissionError):
    """The path leads out of its folder or through a link, has an unsafe component, or is not a regular file."""

    code = "file.refused"

    def __init__(
        self,
        path: str,
        problem: str,
        *,
        hint: str = "use a relative path to a regular file, such as `reports/may.csv`",
    ) -> None:
        super().__init__(f"path `{_show(path)}` rejected: {problem}", hint=hint)


class FileMissing(FileError, FileNotFoundError):
    """The path does not exist."""

    code = "file.missing"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"`{_show(path)}` does not exist", hint="list the folder that should contain it; names are case-sensitive"
        )


class FileTaken(FileError, FileExistsError):
    """The path exists and must not be replaced."""

    code = "file.taken"

    def __init__(self, path: str) -> None:
        super().__init__(f"`{_show(path)}` already exists", hint="pass `overwrite` to replace a file")


class FileChanged(FileError, RuntimeError):
    """The content differs from what was expected: another writer has changed the file."""

    code = "file.changed"

    def __init__(self, path: str, *, gone: bool = False) -> None:
        what = "no longer exists" if gone else "has changed since it was read"
        super().__init__(f"`{_show(path)}` {what}", hint="read the file again and reapply the change")


class FileReplaced(FileError, RuntimeError):
    """The path leads to something else than the folder or file that was recorded."""

    code = "file.replaced"

    def __init__(self, path: str, where: str, what: str) -> None:
        super().__init__(
            f"`{_show(path)}` is not what was recorded: `{_show(where)}` is now {_show(what)}",
            hint="move the recorded folder back to its path, or change the files yourself",
        )


class FileTooLarge(FileError, ValueError):
    """The file exceeds the size limit of a read or a write."""

    code = "file.too_large"

    def __init__(self, path: str, size: int, limit: int) -> None:
        super().__init__(
            f"`{_show(path)}` has {size:,} bytes, which exceeds the limit of {limit:,}",
            hint="read it in parts with `offset` and `length`, or raise the limit",
        )
        self.size = size
        self.limit = limit


class FileFailed(FileError, OSError):
    """A system call failed: the disk is full, for instance, or a permission is missing."""

    code = "file.failed"

    def __init__(self, path: str, problem: str, *, happened: bool = False) -> None:
        tail = "; the change was made but may not survive a power failure" if happened else ""
        super().__init__(f"`{_show(path)}`: {problem}{tail}", hint="check free space, quotas and permissions")
        self.nothing_happened = not happened
