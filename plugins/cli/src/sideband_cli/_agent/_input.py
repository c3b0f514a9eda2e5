"""What ``sideband run`` says to the agent: the prompt, what is piped in, and files."""

from __future__ import annotations

import os
import re
import select
import stat
import sys
from base64 import b64encode
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sideband import UsageError

from .._terminal._printing import notice

if TYPE_CHECKING:
    from sideband.messages import ImagePart

_LARGEST_TEXT = 1 << 20
_LARGEST_IMAGE = 10 << 20
_PATIENCE = 2.0
_NOT_IN_NAMES = re.compile(r'["<>\r\n]')
_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def read_prompt(words: Sequence[str]) -> str:
    """What is asked: the words, and what is piped in, which stands below them or, without any, for them.

    Raises:
        UsageError: there is neither.
    """
    asked = "" if list(words) == ["-"] else " ".join(words)
    piped = _read_piped() if not asked or _is_piped() else ""
    if asked and piped.strip():
        return f"{asked}\n\n{_wrapped('input', piped)}"
    if not (asked or piped).strip():
        raise UsageError("there is no prompt", hint='say what to do: sideband run "…", or pipe it in')
    return asked or piped


def read_files(files: Iterable[Path]) -> tuple[list[str], list[ImagePart]]:
    """Texts, each with the name of its file, and images.

    Raises:
        UsageError: a file can't be read, or is neither.
    """
    read = [_read_file(file) for file in files]
    return [one for one in read if isinstance(one, str)], [one for one in read if not isinstance(one, str)]


def _read_file(file: Path) -> str | ImagePart:
    from sideband.messages import ImagePart

    try:
        with file.open("rb") as stream:
            content = stream.read(_LARGEST_IMAGE + 1)
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror}") from None
    media_type = _media_type(content)
    limit = _LARGEST_IMAGE if media_type else _LARGEST_TEXT
    if len(content) > limit:
        raise UsageError(f"{file} is larger than {limit >> 20} MiB", hint="give the part of it that matters")
    if media_type:
        return ImagePart(media_type=media_type, data=b64encode(content).decode())
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise UsageError(f"{file} is neither a text in UTF-8 nor a PNG, JPEG, GIF or WebP image")
    return _wrapped("file", text, name=file.name)


def _media_type(content: bytes) -> str | None:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for magic, media_type in _IMAGES if content.startswith(magic)), None)


def _wrapped(tag: str, text: str, name: str = "") -> str:
    attribute = f' name="{_NOT_IN_NAMES.sub("_", name)}"' if name else ""
    return f"<{tag}{attribute}>\n{text.removesuffix(chr(10))}\n</{tag}>"


def _is_piped() -> bool:
    """Whether standard input is a file or a pipe, and so meant for this command; a socket, as of a service, is not."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) or stat.S_ISFIFO(mode)


def _read_piped() -> str:
    if sys.stdin.isatty():
        return ""
    if not select.select([sys.stdin], [], [], _PATIENCE)[0]:
        notice("waiting for what is piped in; start it with < /dev/null if there is nothing")
    content = sys.stdin.buffer.read(_LARGEST_TEXT + 1)
    if len(content) > _LARGEST_TEXT:
        raise UsageError(
            f"more than {_LARGEST_TEXT >> 20} MiB are piped in",
            hint="give the part of it that matters, or a file's path",
        )
    return content.decode(errors="replace")
