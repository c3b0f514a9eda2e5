"""The input of ``sideband run``: the prompt, standard input and files."""

from __future__ import annotations

import os
import re
import select
import stat
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sideband import UsageError
from sideband.command_line import notice

if TYPE_CHECKING:
    from sideband.messages import Attachment, ImageUrlPart

_MAX_TEXT_SIZE = 1 << 20
_SILENT_SECONDS = 2.0
_UNSAFE_IN_NAMES = re.compile(r'["<>\r\n]')
_SCHEMES = ("http://", "https://")


def read_prompt(words: Sequence[str]) -> str:
    """Return the prompt from the command line, followed by the piped input; either one may be missing.

    Raises:
        UsageError: if both are missing.
    """
    prompt = "" if list(words) == ["-"] else " ".join(words)
    piped = _read_piped() if not prompt or _is_piped() else ""
    if prompt and piped.strip():
        return f"{prompt}\n\n{wrapped('input', piped)}"
    if not (prompt or piped).strip():
        raise UsageError("no prompt given", hint='pass it as an argument, sideband run "…", or on standard input')
    return prompt or piped


def read_files(files: Iterable[str]) -> tuple[list[str], list[Attachment]]:
    """Return the contents of text files, each wrapped in a tag with its file name, and the attachments.

    Args:
        files: paths, and addresses of images, which begin with ``http://`` or ``https://``.

    Raises:
        UsageError: if a file cannot be read, is too large, or is of an unknown type, or an address is invalid.
    """
    from sideband_agent import LARGEST_ATTACHMENT

    texts: list[str] = []
    attachments: list[Attachment] = []
    left = LARGEST_ATTACHMENT
    for file in files:
        if file.lower().startswith(_SCHEMES):
            attachments.append(_image_at(file))
            continue
        content = _content(Path(file), left)
        left -= len(content)
        found = _attachment(file, content)
        if found is None:
            texts.append(_text(file, content))
        else:
            attachments.append(found)
    return texts, attachments


def _image_at(url: str) -> ImageUrlPart:
    from pydantic import ValidationError
    from sideband.messages import ImageUrlPart

    try:
        return ImageUrlPart(url=url)
    except ValidationError:
        raise UsageError(
            "invalid address of an image", hint="pass an address without a user name, in percent-encoded ASCII"
        ) from None


def _content(file: Path, most: int) -> bytes:
    try:
        with file.open("rb") as stream:
            content = stream.read(most + 1)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from None
    if len(content) > most:
        from sideband_agent import LARGEST_ATTACHMENT

        limit = f"{LARGEST_ATTACHMENT >> 20} MiB"
        raise UsageError(f"{file} exceeds the limit of {limit} for all files", hint="pass only the relevant part")
    return content


def _attachment(file: str, content: bytes) -> Attachment | None:
    from sideband_agent import AttachmentRefused, attachment_of

    try:
        return attachment_of(file, content)
    except AttachmentRefused as error:
        raise UsageError(error.message, hint=error.hint) from None


def _text(file: str, content: bytes) -> str:
    if len(content) > _MAX_TEXT_SIZE:
        hint = "pass only the relevant part"
        raise UsageError(f"{file} exceeds the limit of {_MAX_TEXT_SIZE >> 20} MiB for text", hint=hint)
    return wrapped("file", content.decode(), name=Path(file).name)


def wrapped(tag: str, text: str, name: str = "") -> str:
    """Return a text between tags that name what it is."""
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
