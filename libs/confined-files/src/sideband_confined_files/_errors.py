"""What reading and writing files below a folder can fail with. Messages name files, never what is in them.

    OpFailed
    └── FileError                           file.error
        ├── FileRefused(PermissionError)        file.refused     the path leads elsewhere, or to no ordinary file
        ├── FileMissing(FileNotFoundError)      file.missing     there is nothing at that path
        ├── FileTaken(FileExistsError)          file.taken       there is something, and it must not be replaced
        ├── FileChanged(RuntimeError)           file.changed     what is there is not what was expected
        ├── FileTooLarge(ValueError)            file.too_large   a limit on size
        └── FileFailed(OSError)                 file.failed      the disk is full, or the system refuses

After any of them nothing was changed, except where a ``FileFailed`` says otherwise.
"""

from __future__ import annotations

from sideband.ops import OpFailed

_SHOWN = 200


def _show(path: str) -> str:
    """The path as a message may hold it: on one line, without what moves a cursor, not endless."""
    text = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in path)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class FileError(OpFailed):
    """Something about a file can't be done."""

    nothing_happened = True
    code = "file.error"


class FileRefused(FileError, PermissionError):
    """The path leads out of its folder or through a link, has a part that is unsafe, or names no ordinary file."""

    code = "file.refused"

    def __init__(
        self, path: str, problem: str, *, hint: str = "name an ordinary file by its parts, such as `reports/may.csv`"
    ) -> None:
        super().__init__(f"the path `{_show(path)}` is refused: {problem}", hint=hint)


class FileMissing(FileError, FileNotFoundError):
    """There is nothing at that path."""

    code = "file.missing"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"there is no `{_show(path)}`", hint="look at what its folder holds; large and small letters differ"
        )


class FileTaken(FileError, FileExistsError):
    """There is something at that path, and it must not be replaced."""

    code = "file.taken"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"there is a file or folder `{_show(path)}` already", hint="pass `overwrite` if a file may be replaced"
        )


class FileChanged(FileError, RuntimeError):
    """What is there is not what was expected: somebody else has changed it."""

    code = "file.changed"

    def __init__(self, path: str, *, gone: bool = False) -> None:
        what = "is gone" if gone else "has other content than expected"
        super().__init__(f"`{_show(path)}` {what}", hint="read it again, and repeat the change on what is there now")


class FileTooLarge(FileError, ValueError):
    """The file is larger than may be read or written at once."""

    code = "file.too_large"

    def __init__(self, path: str, size: int, limit: int) -> None:
        super().__init__(
            f"`{_show(path)}` has {size:,} bytes, more than {limit:,}",
            hint="read it in parts with `offset` and `length`, or raise the limit",
        )
        self.size = size
        self.limit = limit


class FileFailed(FileError, OSError):
    """The operating system refused: the disk is full, for instance, or a permission is missing."""

    code = "file.failed"

    def __init__(self, path: str, problem: str, *, happened: bool = False) -> None:
        tail = "; the change was made, and may not survive a power cut" if happened else ""
        super().__init__(f"`{_show(path)}`: {problem}{tail}", hint="look at free space, quotas and permissions")
        self.nothing_happened = not happened
