"""Attachments that protocols receive in different forms."""

from __future__ import annotations

from base64 import b64decode

from sideband.messages import AudioPart, FilePart, ImagePart

_TEXTS = frozenset({"application/json", "application/xml", "application/yaml", "application/toml"})


def data_url(part: ImagePart | FilePart | AudioPart) -> str:
    """Return the content of a part as a data URL.

    Example:
        >>> from sideband.messages import ImagePart
        >>> data_url(ImagePart(media_type="image/png", data="aGk="))
        'data:image/png;base64,aGk='
    """
    return f"data:{part.media_type};base64,{part.data}"


def file_text(part: FilePart) -> str | None:
    """Return the content of a text file, or ``None`` if the file is not a text in UTF-8.

    Example:
        >>> from sideband.messages import FilePart
        >>> file_text(FilePart(media_type="text/plain", data="aGk=", name="a.txt"))
        'hi'
    """
    if not part.media_type.startswith("text/") and part.media_type not in _TEXTS:
        return None
    try:
        return b64decode(part.data, validate=True).decode()
    except ValueError:
        return None
