"""Images in the clipboard, by the program that each desktop has for it."""

from __future__ import annotations

import shutil
from subprocess import DEVNULL, PIPE

from anyio import fail_after, run_process

_SECONDS = 5.0
_PROGRAMS = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-t", "image/png", "-o"),
    ("pngpaste", "-"),
)
PROGRAMS = tuple(command[0] for command in _PROGRAMS)


async def clipboard_image() -> bytes | None:
    """Return the image in the clipboard as a PNG file; ``None`` without one.

    Raises:
        LookupError: if this machine has no program that reads the clipboard.
    """
    found = [command for command in _PROGRAMS if shutil.which(command[0])]
    if not found:
        raise LookupError
    for command in found:
        try:
            with fail_after(_SECONDS):
                done = await run_process(list(command), stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, check=False)
        except (OSError, TimeoutError):
            continue
        if done.returncode == 0 and done.stdout.startswith(b"\x89PNG"):
            return done.stdout
    return None
