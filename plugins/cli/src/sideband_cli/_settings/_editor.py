"""Edit a text in the editor of the user."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from secrets import token_hex

from sideband import UsageError
from sideband.errors import StateUnwritable

_USUAL = ("sensible-editor", "nano", "vim", "vi")


def edited(text: str, folder: Path, name: str) -> str:
    """Return a text as the user has changed it.

    Args:
        text: the text.
        folder: a folder that only the user can read, for the file to edit.
        name: the end of the name of that file, whose extension says how to color it.

    Raises:
        UsageError: if there is no editor, or if it failed.
        StateUnwritable: if the file cannot be written.
    """
    words = _editor()
    file = folder / f"{token_hex(4)}-{name}"  # another terminal may edit the same settings
    try:
        _write(file, text)
        try:
            code = subprocess.run([*words, str(file)], check=False).returncode  # noqa: S603  the user's own program
        except OSError as error:
            raise UsageError(
                f"cannot run the editor `{words[0]}`: {error.strerror}", hint="set the variable EDITOR"
            ) from None
        if code != 0:
            raise UsageError(f"the editor `{words[0]}` failed with exit code {code}", hint="nothing was changed")
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError("the edited file is not UTF-8", hint="nothing was changed") from None
    except FileNotFoundError:
        raise UsageError(f"the editor `{words[0]}` left no file", hint="nothing was changed") from None
    finally:
        file.unlink(missing_ok=True)


def _write(file: Path, text: str) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise StateUnwritable(file, error) from None


def _editor() -> list[str]:
    for variable in ("VISUAL", "EDITOR"):
        try:
            words = shlex.split(os.environ.get(variable, ""))
        except ValueError as error:
            raise UsageError(
                f"the variable {variable} is not a command: {error}", hint="correct its quotation"
            ) from None
        if words:
            return words
    found = next(filter(None, map(shutil.which, _USUAL)), None)
    if found is None:
        raise UsageError("no editor was found", hint="set the variable EDITOR, or use `sideband config set`")
    return [found]
