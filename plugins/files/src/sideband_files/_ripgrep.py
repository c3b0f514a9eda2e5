"""Let ripgrep find the parts of a large file that our own search need not read.

It gets no path, only the open file as its standard input, and it says in which lines a match may be. Our own search
reads these lines and decides. So results do not depend on it, it reads nothing that our own search would not read, and
it may find too much, but never too little: patterns that it could understand in another way are not given to it.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from attrs import define, field, frozen

# Folders whose programs only an administrator can change. An agent may write to others on the `PATH`, such as those of
# a virtual environment.
_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin")
_OPTIONS = [
    *("--no-config", "--text", "--encoding=none", "--line-number", "--byte-offset", "--no-filename", "--no-heading"),
    *("--color=never", "--line-buffered", "--max-columns=1", "--no-max-columns-preview", "--threads=1"),
    *("--regex-size-limit=10M", "--dfa-size-limit=10M"),
]
_MAX_MEMORY = 512 * 1024 * 1024
_SECONDS = 0.05
_PIECE = 65_536
# Elements of patterns that RE2 and ripgrep understand in the same way, or ripgrep as something that matches more.
_IN_CLASS = r"[A-Za-z0-9_ .,:;/@#%=+*?!\"'<>(){}|$] | [A-Z]-[A-Z] | [a-z]-[a-z] | [0-9]-[0-9]"
_COMMON = re.compile(
    rf"""(?P<boundary>\\b)
    | (?P<any>\. | \[\^(?:{_IN_CLASS})+\])
    | \\[dsw] | \\[.^$*+?()\[\]{{}}|\\]
    | \((?!\?) | \(\?: | \) | [$^|]
    | (?:[*+?] | \{{[0-9]+(?:,[0-9]*)?\}})\??
    | \[(?:{_IN_CLASS} | \\[dsw])+\]
    | [^\\\[\](){{}}.^$|*+?\0\r\n]
    """,
    re.VERBOSE,
)
# Not valid in UTF-8, but a character for RE2.
_SURROGATE = r"(?-u:\xed[\xa0-\xbf][\x80-\xbf])"


def find_ripgrep(setting: str) -> Path | None:
    """Return the program, or ``None`` if it is not installed or not wanted.

    Args:
        setting: its path, ``auto`` for the one of the system, or ``never``.
    """
    if setting != "auto":
        return None if setting == "never" else Path(setting)
    candidates = (Path(folder, "rg") for folder in _FOLDERS)
    return next((one for one in candidates if os.access(one, os.X_OK)), None)


@frozen
class Ripgrep:
    """A search for one pattern.

    Args:
        program: the path of ripgrep.
        arguments: the pattern and its options.
    """

    program: Path
    arguments: tuple[str, ...]

    @classmethod
    def of(cls, program: Path | None, pattern: str, *, literal: bool, ignore_case: bool) -> Ripgrep | None:
        """Return the search, or ``None`` if ripgrep is not installed or could understand the pattern in another way."""
        if program is None or (ignore_case and not pattern.isascii()):
            return None
        own = _translated(pattern) if not literal else None if re.search(r"[\0\r\n]", pattern) else pattern
        if own is None:
            return None
        options = [*(["--fixed-strings"] if literal else []), *(["--ignore-case"] if ignore_case else [])]
        return cls(program, (*_OPTIONS, *options, "--regexp", own, "-"))

    @contextmanager
    def candidates(self, descriptor: int, is_over: Callable[[], bool]) -> Iterator[Candidates]:
        """Search an open file.

        Args:
            descriptor: its descriptor, at the beginning of the file.
            is_over: returns whether to end the search. Called several times a second.
        """
        try:
            process = subprocess.Popen(  # noqa: S603  fixed options, and no shell
                [self.program, *self.arguments],
                stdin=descriptor,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
            )
        except OSError:
            yield Candidates(None, None, is_over)
            return
        try:
            if sys.platform == "linux":  # it keeps the longest line in memory
                with contextlib.suppress(ProcessLookupError):
                    resource.prlimit(process.pid, resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))
            yield Candidates(process, process.stdout, is_over)
        finally:
            process.kill()
            process.communicate()


@define
class Candidates:
    """The lines in which a match may be, in order."""

    _process: subprocess.Popen[bytes] | None
    _output: IO[bytes] | None
    _is_over: Callable[[], bool]
    _found: list[tuple[int, int]] = field(factory=list)
    _rest: bytes = b""
    is_complete: bool = False

    def next(self, offset: int) -> tuple[int, int] | None:
        """Return the next line at an offset or after it, as its offset and its number.

        Returns:
            ``None`` if no line follows, then ``is_complete`` is set; or if that is not known.
        """
        while True:
            while self._found:
                if self._found[-1][0] >= offset:
                    return self._found[-1]
                self._found.pop()
            if self._process is None or self._output is None or not self._read(self._process, self._output):
                self._process = None
                return None

    def _read(self, process: subprocess.Popen[bytes], output: IO[bytes]) -> bool:
        """Read more of what was found, and return whether there was more."""
        while not select.select([output], [], [], _SECONDS)[0]:
            if self._is_over():
                return False
        data = os.read(output.fileno(), _PIECE)
        if not data:
            # 1 means that no line matches; anything else, that it has not searched everything
            self.is_complete = process.wait() in (0, 1)
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        try:
            fields = [line.split(b":", 2) for line in lines]
            self._found = [(int(at), int(number)) for number, at, _ in reversed(fields)]
        except ValueError:  # it is another program
            return False
        return True


def _translated(pattern: str) -> str | None:
    r"""Return a pattern for ripgrep that matches at least the same lines, or ``None``.

    Example:
        >>> _translated(r"\bdef [a-z]+\(")
        '(?-u:\\b)def [a-z]+\\('
        >>> _translated(r"[[:alpha:]]") is _translated(r"\D") is _translated("(?i)x") is None
        True
    """
    parts, at = [], 0
    while at < len(pattern):
        found = _COMMON.match(pattern, at)
        if found is None:
            return None
        if found["boundary"]:
            parts.append(r"(?-u:\b)")  # as in RE2, only letters of ASCII are letters
        elif found["any"]:
            parts.append(f"(?:{found[0]}|{_SURROGATE})")
        else:
            parts.append(found[0])
        at = found.end()
    return "".join(parts)
