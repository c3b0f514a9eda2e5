"""What only this family can fail with. All else is in `sideband_confined_files`: `file.refused`, `file.missing` ….

OpFailed
└── FilesError                    files.failed
    ├── FilesNotText(ValueError)      files.text        what is there is no UTF-8
    └── FilesTooMany(ValueError)      files.too_many    a search looked at more names than it may
"""

from __future__ import annotations

from sideband.ops import OpFailed


class FilesError(OpFailed):
    """An op on files failed; nothing was changed."""

    nothing_happened = True
    code = "files.failed"


class FilesNotText(FilesError, ValueError):
    """What is there, or this part of it, is no UTF-8."""

    code = "files.text"

    def __init__(self, name: str, position: int) -> None:
        super().__init__(
            f"`{name}` is no UTF-8 text at byte {position:,}",
            hint='read it with `kind="bytes"`; a part of a text must begin where a character begins',
        )


class FilesTooMany(FilesError, ValueError):
    """A search looked at more names than it may."""

    code = "files.too_many"

    def __init__(self, name: str, limit: int) -> None:
        super().__init__(
            f"`{name}` holds more than the {limit:,} names that a search may look at",
            hint="search a smaller folder; `max_visited` in `[plugins.files]` sets the limit",
        )
