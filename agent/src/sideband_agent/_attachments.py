"""Attachments: the kind of a file, by its content and name, and the check for secrets."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from pathlib import PurePath
from urllib.parse import unquote

from sideband.broker import Redaction
from sideband.messages import Attachment, AudioPart, FilePart, ImagePart, ImageUrlPart

from ._errors import AttachmentRefused
from ._queues import Queued

_LARGEST_IMAGE = 10 << 20
LARGEST_ATTACHMENT = 32 << 20
"""The maximum size of an attachment in bytes. Providers accept about as much in one request."""

_LONGEST_NAME = 255
_ZIP, _COMPOUND = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_OPEN_XML = "application/vnd.openxmlformats-officedocument"
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument"
# Office documents share a container. Their names distinguish them.
_DOCUMENTS = {
    ".docx": (_ZIP, f"{_OPEN_XML}.wordprocessingml.document"),
    ".pptx": (_ZIP, f"{_OPEN_XML}.presentationml.presentation"),
    ".xlsx": (_ZIP, f"{_OPEN_XML}.spreadsheetml.sheet"),
    ".odt": (_ZIP, f"{_OPEN_DOCUMENT}.text"),
    ".odp": (_ZIP, f"{_OPEN_DOCUMENT}.presentation"),
    ".ods": (_ZIP, f"{_OPEN_DOCUMENT}.spreadsheet"),
    ".doc": (_COMPOUND, "application/msword"),
    ".ppt": (_COMPOUND, "application/vnd.ms-powerpoint"),
    ".xls": (_COMPOUND, "application/vnd.ms-excel"),
}
_SIGNATURES: tuple[tuple[Callable[[bytes], bool], str], ...] = (
    (lambda start: start.startswith(b"\x89PNG\r\n\x1a\n"), "image/png"),
    (lambda start: start.startswith(b"\xff\xd8\xff"), "image/jpeg"),
    (lambda start: start.startswith((b"GIF87a", b"GIF89a")), "image/gif"),
    (lambda start: start[:4] == b"RIFF" and start[8:12] == b"WEBP", "image/webp"),
    (lambda start: start[:4] == b"RIFF" and start[8:12] == b"WAVE", "audio/wav"),
    (lambda start: start.startswith((b"ID3", b"\xff\xfb", b"\xff\xfa", b"\xff\xf3", b"\xff\xf2")), "audio/mpeg"),
    (lambda start: start.startswith((b"\xff\xf1", b"\xff\xf9")), "audio/aac"),
    (lambda start: start.startswith(b"OggS"), "audio/ogg"),
    (lambda start: start.startswith(b"fLaC"), "audio/flac"),
    (lambda start: start[4:11] == b"ftypM4A", "audio/mp4"),
    (lambda start: start.startswith(b"%PDF-"), "application/pdf"),
    (lambda start: start.startswith(b"{\\rtf"), "application/rtf"),
)
_KNOWN = (
    "attach an image (PNG, JPEG, GIF or WebP), a PDF, a recording (WAV, MP3, AAC, Ogg, FLAC or M4A), an office "
    "document or UTF-8 text; convert anything else"
)


def attachment_of(name: str, content: bytes) -> Attachment | None:
    r"""Return the attachment for a file, or ``None`` for text, which belongs into the text of the input.

    Args:
        name: the name of the file. Its extension matters for office documents only.
        content: the content, which decides in all other cases.

    Raises:
        AttachmentRefused: if the file is too large or of an unknown type.

    Example:
        >>> attachment_of("report.dat", b"%PDF-1.7\n").media_type
        'application/pdf'
        >>> attachment_of("notes.md", b"be brief") is None
        True
    """
    media_type = _media_type(name, content)
    if media_type is None:
        if _is_text(content):
            return None
        raise AttachmentRefused(f"`{name}`", "unknown type of file", hint=_KNOWN)
    limit = _LARGEST_IMAGE if media_type.startswith("image/") else LARGEST_ATTACHMENT
    if len(content) > limit:
        problem = f"it exceeds the limit of {limit >> 20} MiB"
        raise AttachmentRefused(f"`{name}`", problem, hint="attach only the relevant part")
    data = b64encode(content).decode()
    if media_type.startswith("image/"):
        return ImagePart(media_type=media_type, data=data)
    if media_type.startswith("audio/"):
        return AudioPart(media_type=media_type, data=data)
    return FilePart(media_type=media_type, data=data, name=PurePath(name).name[-_LONGEST_NAME:] or "file")


def checked_input(redactor: Redaction, text: str, attachments: Iterable[Attachment], source: str = "user") -> Queued:
    """Return an input whose attachments contain no known secret.

    Raises:
        AttachmentRefused: if one contains a secret.
    """
    given = tuple(attachments)
    for one in given:
        check_attachment(one, redactor)
    return Queued(text, source, given)


def check_attachment(attachment: Attachment, redactor: Redaction) -> None:
    """Check that an attachment contains no known secret. Unlike a text, it cannot be sent without it.

    Raises:
        AttachmentRefused: if it contains one.
    """
    if isinstance(attachment, ImageUrlPart):
        found = redactor.unbound(attachment.url, None) or redactor.unbound(unquote(attachment.url), None)
        if found is not None or redactor.text(attachment.url) != attachment.url:
            raise _secret_in("the address of an image", found)
        return
    name = attachment.name if isinstance(attachment, FilePart) else ""
    if (found := redactor.unbound(name, None)) is not None:
        raise _secret_in("a file by this name", found)
    what = f"`{name}`" if name else f"the {attachment.type}"
    try:
        content = b64decode(attachment.data, validate=True)
    except ValueError:
        raise AttachmentRefused(what, "its data is not valid base64", hint="encode it with `b64encode`") from None
    found = redactor.unbound(content, None)
    if found is not None:
        raise _secret_in(what, found)


def _secret_in(what: str, name: str | None) -> AttachmentRefused:
    secret = f"the secret `{name}`" if name else "a value that looks like a secret"
    return AttachmentRefused(what, f"it contains {secret}", hint="remove the secret; models must not see it")


def _media_type(name: str, content: bytes) -> str | None:
    start = content[:16]
    found = next((media_type for matches, media_type in _SIGNATURES if matches(start)), None)
    signature, media_type = _DOCUMENTS.get(PurePath(name).suffix.lower(), (b"", ""))
    return media_type if signature and start.startswith(signature) else found


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False
