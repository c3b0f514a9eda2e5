"""What the user types, pastes or completes, shown so that no character hides or reorders others.

The name of a file may have such characters, and completion inserts it as it is.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments
from sideband.rendering import Renderer


class ShownInput(Processor):
    """Shows characters that ``render`` escapes as escape sequences. The text itself remains the same."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Return one line as it is shown."""
        fragments = transformation_input.fragments
        if fragment_list_to_text(fragments).isascii():  # control characters are shown by prompt_toolkit
            return Transformation(fragments)
        renderer = Renderer(prose=True)
        exploded = explode_text_fragments(fragments)
        shown = [(style, renderer.feed(one) if ord(one) > 0x9F else one) for style, one, *_ in exploded]
        starts = [0, *accumulate(len(text) for _, text in shown)]

        def to_display(position: int) -> int:
            return starts[min(position, len(shown))] + max(0, position - len(shown))

        def to_source(position: int) -> int:
            return bisect_right(starts, position) - 1 + max(0, position - starts[-1])

        return Transformation([*shown], to_display, to_source)
