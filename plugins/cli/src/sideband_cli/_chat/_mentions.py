"""Files and folders that a message names, such as ``@src/app.py``: they are sent with it.

Only what the user types is read so, with the rights of the user.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from .._agent._input import read_files, wrapped

if TYPE_CHECKING:
    from sideband.messages import Attachment

MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|(\S+))')
_MAX_ENTRIES = 500
_AFTER_PATH = ".,;:!?)"


@frozen
class Mentioned:
    """What a message names.

    Attributes:
        text: the message, followed by the texts of the files and the entries of the folders.
        attachments: the other files.
        paths: the paths, as they are written.
    """

    text: str
    attachments: Sequence[Attachment]
    paths: Sequence[str]


def mentioned(text: str, folder: Path) -> Mentioned:
    """Return a message with the files that it names. Words that name no file stay as they are.

    Args:
        text: the message.
        folder: the folder to which paths are relative.

    Raises:
        UsageError: if a file cannot be read or sent.
    """
    paths = dict.fromkeys(filter(None, (_existing(found[1] or found[2], folder) for found in MENTION.finditer(text))))
    folders = [path for path in paths if (folder / Path(path).expanduser()).is_dir()]
    files = [str(folder / Path(path).expanduser()) for path in paths if path not in folders]
    texts, attachments = read_files(files)
    listed = [wrapped("folder", _entries(folder / Path(path).expanduser()), name=path) for path in folders]
    return Mentioned("\n\n".join([text, *texts, *listed]), attachments, list(paths))


def _existing(word: str, folder: Path) -> str:
    """Return the path that a word is, without the punctuation after it; nothing if there is no such file."""
    for path in (word, word.rstrip(_AFTER_PATH)):
        try:
            if path and (folder / Path(path).expanduser()).exists():
                return path
        except (OSError, RuntimeError, ValueError):  # such as a name that is too long, or an unknown home folder
            continue
    return ""


def _entries(folder: Path) -> str:
    with os.scandir(folder) as found:
        names = sorted(f"{one.name}/" if one.is_dir() else one.name for one in found)
    more = len(names) - _MAX_ENTRIES
    return "\n".join([*names[:_MAX_ENTRIES], *([f"… {more:,} more"] if more > 0 else [])])
