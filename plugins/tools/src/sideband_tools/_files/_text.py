"""Text as it is stored in a file: its encoding, its byte order mark, and the ends of its lines."""

from __future__ import annotations

import codecs

from attrs import frozen

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""The byte order marks of encodings in which a line feed is more than one byte."""


@frozen
class StoredText:
    """The text of a file, and what is needed to write a changed text in the same form.

    Attributes:
        text: the text. If all lines end with a carriage return and a line feed, they end with a line feed here.
        encoding: the encoding: `utf-8`, `utf-16-le`, `utf-16-be`, or `latin-1` for bytes that are not UTF-8.
        mark: the byte order mark.
        crlf: whether all lines end with a carriage return and a line feed in the file.
    """

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""
    crlf: bool = False

    def encode(self, text: str) -> bytes:
        """Return another text in the form of this one.

        Raises:
            UnicodeEncodeError: if the encoding cannot express a character.
        """
        if self.crlf:
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        return self.mark + text.encode(self.encoding)


def stored_text(data: bytes) -> StoredText | None:
    r"""Return the text that these bytes are, or ``None`` if they are not text.

    Example:
        >>> found = stored_text(b"a\r\nb\r\n")
        >>> found.text, found.encode("a\nc\n")
        ('a\nb\n', b'a\r\nc\r\n')
    """
    mark, encoding = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8"))
    content = data[len(mark) :]
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        if mark:
            return None
        encoding, text = "latin-1", content.decode("latin-1")
    if "\0" in text:
        return None
    crlf = "\r\n" in text and text.count("\r\n") == text.count("\n") == text.count("\r")
    return StoredText(text.replace("\r\n", "\n") if crlf else text, encoding, mark, crlf)
