"""Images that the user pastes into a message. A mark in its text shows where each is."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

from attrs import define, field
from sideband.messages import ImagePart

from ._clipboard import PROGRAMS, clipboard_image


@define(eq=False)
class PastedImages:
    """The images that were pasted since the last message.

    Attributes:
        report: shows why nothing was pasted.
    """

    report: Callable[[str], None]
    _images: list[ImagePart] = field(factory=list, init=False, repr=False)

    async def paste(self, insert: Callable[[str], None]) -> None:
        """Keep the image in the clipboard, and insert its mark."""
        try:
            found = await clipboard_image()
        except LookupError:
            self.report(f"to paste images, install one of {', '.join(PROGRAMS)}")
            return
        if found is None:
            self.report("the clipboard has no image")
            return
        self._images.append(ImagePart(media_type="image/png", data=b64encode(found).decode()))
        insert(_mark(len(self._images)))

    def take(self, text: str) -> list[ImagePart]:
        """Return the images whose marks are in a message, and forget all others."""
        found, self._images = self._images, []
        return [one for number, one in enumerate(found, 1) if _mark(number) in text]


def _mark(number: int) -> str:
    return f"[image {number}]"
