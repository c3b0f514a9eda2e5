"""Builds the seatbelt profile of a worker on macOS: it may read the listed paths, and do nothing else.

A profile denies by default, and child processes inherit it. Apple has deprecated ``sandbox-exec``, but ships it with
every release.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from attrs import frozen

SANDBOX_EXEC = Path("/usr/bin/sandbox-exec")

# Folders that the dynamic linker maps into every program, and public files that the standard library reads. The linker
# kills a program that may not read the root folder itself.
_SYSTEM_FOLDERS = ("/System/Cryptexes/OS", "/System/Library", "/System/Volumes/Preboot/Cryptexes/OS", "/usr/lib")
_PUBLIC_FOLDERS = ("/private/var/db/timezone", "/usr/share/icu", "/usr/share/locale", "/usr/share/zoneinfo")
_PUBLIC_FILES = ("/", "/dev/null", "/dev/random", "/dev/urandom", "/private/etc/localtime")

# Listed by name, because other values contain the arguments and environment of every process (``kern.procargs2``).
_SYSTEM_VALUES = (
    "hw.activecpu", "hw.byteorder", "hw.cachelinesize", "hw.logicalcpu", "hw.machine", "hw.memsize", "hw.ncpu",
    "hw.pagesize", "hw.physicalcpu", "kern.argmax", "kern.hostname", "kern.maxfilesperproc", "kern.osproductversion",
    "kern.osrelease", "kern.ostype", "kern.osversion", "kern.usrstack64", "kern.version", "sysctl.proc_translated",
)  # fmt: skip

_LONGEST_PATH = 1024


@frozen
class SeatbeltInterpreter:
    """The files and folders of one Python interpreter.

    Args:
        programs: the executable, then those that it executes in its place.
        folders: the folders of the standard library.
        files: shared libraries, and other files that it reads.
    """

    programs: tuple[str, ...]
    folders: tuple[str, ...]
    files: tuple[str, ...] = ()


def seatbelt_profile(interpreter: SeatbeltInterpreter, folders: Iterable[Path]) -> str:
    """Return the profile of one worker.

    Resolves symbolic links, so async code must call it in a thread.

    Args:
        interpreter: the files that every worker reads.
        folders: the worker's own folders: SDK, snapshot, packages.

    Raises:
        ValueError: if a path cannot be quoted in a profile.
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
        # The last matching rule applies.
        _rule("deny file-read* file-map-executable", "subpath", machine),
        _rule("allow file-read* file-map-executable", "subpath", own),
    ]
    return "".join(rule + "\n" for rule in rules if rule)


def seatbelt_wrapper(profile: str, sandbox_exec: Path = SANDBOX_EXEC) -> tuple[str, ...]:
    """Return the command prefix for ``sideband.workers.launch``."""
    return (str(sandbox_exec), "-p", profile)


def _rule(action: str, kind: str, values: Iterable[str]) -> str:
    """Return one rule for many values. Empty without values, because such a rule would apply to everything."""
    filters = [f"({kind} {_quoted(value)})" for value in sorted(set(values))]
    return f"({action} {' '.join(filters)})" if filters else ""


def _with_targets(paths: Iterable[str]) -> set[str]:
    """Return the paths as given, and with their links resolved."""
    written = set(paths)
    return written | {os.path.realpath(path) for path in written}


def _quoted(text: str) -> str:
    """Quote a string for a profile."""
    if not text.isprintable() or len(text.encode("utf-8", "replace")) >= _LONGEST_PATH:
        raise ValueError(f"cannot quote {text!r} in a profile")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
