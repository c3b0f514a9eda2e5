"""Images in files: their type and their content."""

from __future__ import annotations

from base64 import b64encode

from sideband.messages import ImagePart
from sideband.tools import RESULT_LIMITS, ToolContext

from .._errors import FileNotReadable
from .._places import CallRights

_TYPES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def image_type(beginning: bytes) -> str | None:
    r"""Return the media type of the image that begins with these bytes, or ``None``.

    Example:
        >>> image_type(b"GIF89a\1\0\1\0"), image_type(b"hello")
        ('image/gif', None)
    """
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP":
        return "image/webp"
    return next((name for start, name in _TYPES.items() if beginning.startswith(start)), None)


async def read_image(ctx: ToolContext, path: str, rights: CallRights, media_type: str, size: int) -> ImagePart:
    """Return the image in a file.

    Raises:
        FileNotReadable: if it is too large for models.
    """
    if size > RESULT_LIMITS.image:
        raise FileNotReadable(path, f"the image has {size:,} bytes, more than the limit of {RESULT_LIMITS.image:,}")
    found = await ctx.dispatch("files.read", {"path": path, "kind": "bytes"}, **rights)
    return ImagePart(media_type=media_type, data=b64encode(found["content"]).decode())
