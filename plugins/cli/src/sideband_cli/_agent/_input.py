"""The input of ``sideband run``: the prompt, standard input and files."""

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

_MAX_TEXT_SIZE = 1 << 20
_MAX_IMAGE_SIZE = 10 << 20
_SILENT_SECONDS = 2.0
_UNSAFE_IN_NAMES = re.compile(r'["<>\r\n]')
_IMAGE_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def read_prompt(words: Sequence[str]) -> str:
    """Return the prompt from the command line, followed by the piped input; either one may be missing.

    Raises:
        UsageError: if both are missing.
    """
    prompt = "" if list(words) == ["-"] else " ".join(words)
    piped = _read_piped() if not prompt or _is_piped() else ""
    if prompt and piped.strip():
        return f"{prompt}\n\n{_wrapped('input', piped)}"
    if not (prompt or piped).strip():
        raise UsageError("no prompt given", hint='pass it as an argument, sideband run "…", or on standard input')
    return prompt or piped


def read_files(files: Iterable[Path]) -> tuple[list[str], list[ImagePart]]:
    """Return the contents of text files, each wrapped in a tag with its file name, and the images.

    Raises:
        UsageError: if a file cannot be read, is too large, or is neither text nor a supported image.
    """
    read = [_read_file(file) for file in files]
    return [one for one in read if isinstance(one, str)], [one for one in read if not isinstance(one, str)]


def _read_file(file: Path) -> str | ImagePart:
    from sideband.messages import ImagePart

    try:
        with file.open("rb") as stream:
            content = stream.read(_MAX_IMAGE_SIZE + 1)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from None
    media_type = _media_type(content)
    limit = _MAX_IMAGE_SIZE if media_type else _MAX_TEXT_SIZE
    if len(content) > limit:
        raise UsageError(f"{file} exceeds the limit of {limit >> 20} MiB", hint="pass only the relevant part")
    if media_type:
        return ImagePart(media_type=media_type, data=b64encode(content).decode())
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise UsageError(f"{file} is neither UTF-8 text nor a PNG, JPEG, GIF or WebP image")
    return _wrapped("file", text, name=file.name)


def _media_type(content: bytes) -> str | None:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for magic, media_type in _IMAGE_SIGNATURES if content.startswith(magic)), None)


def _wrapped(tag: str, text: str, name: str = "") -> str:
    attribute = f' name="{_UNSAFE_IN_NAMES.sub("_", name)}"' if name else ""
    return f"<{tag}{attribute}>\n{text.removesuffix(chr(10))}\n</{tag}>"


def _is_piped() -> bool:
    """Return whether standard input is a file or a pipe. A socket, as services have, is not meant as input."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) or stat.S_ISFIFO(mode)


def _read_piped() -> str:
    if sys.stdin.isatty():
        return ""
    if not select.select([sys.stdin], [], [], _SILENT_SECONDS)[0]:
        notice("waiting for input from the pipe; redirect it from /dev/null for a prompt without input")
    content = sys.stdin.buffer.read(_MAX_TEXT_SIZE + 1)
    if len(content) > _MAX_TEXT_SIZE:
        raise UsageError(
            f"standard input exceeds the limit of {_MAX_TEXT_SIZE >> 20} MiB",
            hint="pipe in only the relevant part, or put a file's path into the prompt",
        )
    return content.decode(errors="replace")
