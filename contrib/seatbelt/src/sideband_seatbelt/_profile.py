"""The profile of a worker on macOS: it reads what is named here, and does nothing else.

A profile denies by default and is inherited by whatever a process starts. Apple calls ``sandbox-exec`` deprecated, and
ships it with every release.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from attrs import frozen

SANDBOX_EXEC = Path("/usr/bin/sandbox-exec")

# What the dynamic linker maps into every program, and the public facts that the standard library reads. The linker ends
# a program that may not read the root folder itself.
_SYSTEM_FOLDERS = ("/System/Cryptexes/OS", "/System/Library", "/System/Volumes/Preboot/Cryptexes/OS", "/usr/lib")
_PUBLIC_FOLDERS = ("/private/var/db/timezone", "/usr/share/icu", "/usr/share/locale", "/usr/share/zoneinfo")
_PUBLIC_FILES = ("/", "/dev/null", "/dev/random", "/dev/urandom", "/private/etc/localtime")

# By name, since others of them tell the arguments and the environment of every process (``kern.procargs2``).
_SYSTEM_VALUES = (
    "hw.activecpu", "hw.byteorder", "hw.cachelinesize", "hw.logicalcpu", "hw.machine", "hw.memsize", "hw.ncpu",
    "hw.pagesize", "hw.physicalcpu", "kern.argmax", "kern.hostname", "kern.maxfilesperproc", "kern.osproductversion",
    "kern.osrelease", "kern.ostype", "kern.osversion", "kern.usrstack64", "kern.version", "sysctl.proc_translated",
)  # fmt: skip

_LONGEST_PATH = 1024


@frozen
class SeatbeltInterpreter:
    """What one Python interpreter is made of.

    Args:
        programs: first the one that is started, then those by which it replaces itself.
        folders: those of the standard library.
        files: shared libraries, and what else it reads.
    """

    programs: tuple[str, ...]
    folders: tuple[str, ...]
    files: tuple[str, ...] = ()


def seatbelt_profile(interpreter: SeatbeltInterpreter, folders: Iterable[Path]) -> str:
    """The profile of one worker: it reads what is named here, and does nothing else.

    It looks at the file system to follow links, so async code runs it in a thread.

    Args:
        interpreter: what has to be read to run at all.
        folders: the worker's own: SDK, snapshot, packages.

    Raises:
        ValueError: a path can't be written in a profile.
    """
    own = {os.path.realpath(folder) for folder in folders}
    programs = _with_targets(interpreter.programs)
    files = programs | _with_targets(interpreter.files)
    above = {str(parent) for path in {*own, *files, *interpreter.folders} for parent in Path(path).parents}
    machine = [f"{folder}/{name}" for folder in interpreter.folders for name in ("site-packages", "dist-packages")]
    rules = [
        "(version 1)",
        "(deny default)",
        _rule("allow process-exec*", "literal", programs),
        "(allow process-info* (target self))",
        "(allow signal (target self))",
        _rule("allow sysctl-read", "sysctl-name", _SYSTEM_VALUES),
        _rule("allow file-read-metadata", "literal", above),
        _rule("allow file-read*", "literal", _PUBLIC_FILES),
        _rule("allow file-read*", "subpath", _PUBLIC_FOLDERS),
        _rule("allow file-read* file-map-executable", "subpath", [*_SYSTEM_FOLDERS, *interpreter.folders]),
        _rule("allow file-read* file-map-executable", "literal", files),
        # The last rule that matches decides.
        _rule("deny file-read* file-map-executable", "subpath", machine),
        _rule("allow file-read* file-map-executable", "subpath", own),
    ]
    return "".join(rule + "\n" for rule in rules if rule)


def seatbelt_wrapper(profile: str, sandbox_exec: Path = SANDBOX_EXEC) -> tuple[str, ...]:
    """The command to put before a worker's own, for ``sideband.workers.launch``."""
    return (str(sandbox_exec), "-p", profile)


def _rule(action: str, kind: str, values: Iterable[str]) -> str:
    """One rule about many values; without any it would be one about everything, so there is none then."""
    filters = [f"({kind} {_quoted(value)})" for value in sorted(set(values))]
    return f"({action} {' '.join(filters)})" if filters else ""


def _with_targets(paths: Iterable[str]) -> set[str]:
    """As they are written, and where their links lead."""
    written = set(paths)
    return written | {os.path.realpath(path) for path in written}


def _quoted(text: str) -> str:
    """A string of the profile's language."""
    if not text.isprintable() or len(text.encode("utf-8", "replace")) >= _LONGEST_PATH:
        raise ValueError(f"{text!r} can't be written in a profile")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
