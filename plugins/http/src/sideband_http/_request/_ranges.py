"""Requests for a part of a body.

A secret that is cut by the boundary of a part cannot be redacted, so a skill could read it in slices. The host
therefore requests some bytes before and after the part, and refuses a part that begins or ends inside a secret.
"""

from __future__ import annotations

import re

from attrs import frozen
from sideband.ops import OpContext

from .._errors import HeaderRefused

MARGIN = 65_536
"""The number of bytes before and after a part that the host requests."""

_RANGE = re.compile(r"bytes=(?:([0-9]{1,15})-([0-9]{1,15})?|-([0-9]{1,15}))\Z")
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,15})-([0-9]{1,15})/([0-9]{1,15})\Z")


@frozen
class RequestedRange:
    """The part of a body that a skill requests.

    Args:
        first: the position of its first byte, or ``None`` for the last ``length`` bytes of the body.
        last: the position of its last byte, or ``None`` if it ends with the body.
        length: the number of bytes from the end of the body, if ``first`` is ``None``.
    """

    first: int | None
    last: int | None = None
    length: int = 0

    @classmethod
    def parse(cls, value: str) -> RequestedRange:
        """Parse the value of a ``Range`` header.

        Raises:
            HeaderRefused: if it is not a single range of bytes.
        """
        problem = HeaderRefused("Range", "is not a single range of bytes", hint="use a form such as `bytes=0-99`")
        if (found := _RANGE.match(value)) is None:
            raise problem
        first, last, length = (None if one is None else int(one) for one in found.groups())
        if first is not None and last is not None and first > last:
            raise problem
        return cls(first, last, length or 0)

    @property
    def widened(self) -> str:
        """The value of the ``Range`` header that is sent."""
        if self.first is None:
            return f"bytes=-{self.length + MARGIN}"
        return f"bytes={max(0, self.first - MARGIN)}-{'' if self.last is None else self.last + MARGIN}"

    def cut_from(self, content: bytes, content_range: str, ctx: OpContext) -> tuple[bytes, str]:
        """Return the requested part of the content that a server sent, and its ``Content-Range``.

        Args:
            content: the content.
            content_range: the server's ``Content-Range``.
            ctx: the context of the op.

        Raises:
            ValueError: if the server did not send the widened range.
            EgressRefused: if the part begins or ends inside a known secret.
        """
        found = _CONTENT_RANGE.match(content_range)
        begin, end, size = (int(one) for one in found.groups()) if found else (0, 0, 0)
        end += 1
        if end > size or end - begin != len(content):
            raise ValueError("invalid or missing Content-Range")
        start = max(0, size - self.length) if self.first is None else self.first
        stop = size if self.last is None else min(size, self.last + 1)
        if start >= stop:
            return b"", f"bytes */{size}"
        if begin > max(0, start - MARGIN) or end < min(size, stop + MARGIN):
            raise ValueError("the response has another range than the request")
        for cut in (start - begin, stop - begin):
            ctx.check_cut(content[max(0, cut - MARGIN) : cut], content[cut : cut + MARGIN])
        return content[start - begin : stop - begin], f"bytes {start}-{stop - 1}/{size}"
