"""Determines which paths a worker may read: those that its interpreter needs, and no others.

The standard library is allowed entry by entry, because its folder also contains the packages of the machine
(``site-packages``), which workers must not read. Shared libraries are allowed file by file: those that the
interpreter's own modules load, and those that a portable C extension may expect on any system.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import anyio
from attrs import evolve, frozen

_SITE_FOLDERS = frozenset({"site-packages", "dist-packages"})

# Libraries that the manylinux policy lets wheels link without bundling, and those that the C library loads itself.
_PORTABLE_LIBRARIES = (
    "libc.so.6", "libdl.so.2", "libexpat.so.1", "libgcc_s.so.1", "libm.so.6", "libmvec.so.1", "libnsl.so.1",
    "libpthread.so.0", "libresolv.so.2", "librt.so.1", "libstdc++.so.6", "libutil.so.1", "libz.so.1",
)  # fmt: skip

# Public files that the standard library reads at run time.
_PUBLIC_FILES = ("/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types", "/etc/ssl/openssl.cnf")
_PUBLIC_FOLDERS = ("/usr/share/zoneinfo", "/usr/lib/locale")

# Runs in the workers' interpreter. Loads every C module of the standard library to find the libraries they load. They
# are not imported if that can be avoided, because they would import a third of the standard library. The library is
# located by the search path, because sysconfig is wrong for an interpreter that has been moved.
_INSPECTION = """
import json, os, sys
try:
    from _ctypes import dlopen
except ImportError:
    import importlib, warnings
    warnings.simplefilter("ignore")
    load = lambda path, module: importlib.import_module(module)
else:
    load = lambda path, module: dlopen(path, os.RTLD_LAZY)
ways = [path for path in sys.path if os.path.isabs(path)]
folders = sorted({os.path.realpath(path) for path in ways if os.path.isdir(path)})
for folder, name in sorted((folder, name) for folder in folders for name in os.listdir(folder)):
    module = name.partition(".")[0]
    if not name.endswith(".so") or module.startswith(("_test", "_xx", "xx", "_tkinter", "_ctypes_test")):
        continue
    try:
        load(os.path.join(folder, name), module)
    except Exception:
        pass
archives = [path for path in sys.path if path.endswith(".zip") and os.path.isfile(path)]
with open("/proc/self/maps") as maps:
    fields = [line.split(None, 5) for line in maps]
libraries = {parts[5].strip() for parts in fields if len(parts) == 6 and ".so" in parts[5]}
print(json.dumps({"folders": folders, "archives": archives, "libraries": sorted(libraries), "ways": ways}))
"""


@frozen
class Interpreter:
    """The files and folders of one Python interpreter.

    Args:
        folders: the folders of the standard library.
        archives: the zip file of the standard library, if it exists.
        libraries: the shared objects that the interpreter and its modules load.
        ways: the folders of its search path as spelled there, with symbolic links unresolved.
    """

    folders: tuple[str, ...]
    archives: tuple[str, ...]
    libraries: tuple[str, ...]
    ways: tuple[str, ...] = ()


@frozen
class ReadablePath:
    """A path that a worker may read.

    Args:
        folder: an absolute path without symbolic links.
        names: the readable entries of the folder, recursively; empty for the whole folder.
        listing: whether the folder may be listed, including the names of entries that may not be read.
        hidden: entries that the worker must not see.
        libraries: whether this is a folder of shared libraries, whose unreadable entries may be seen.
    """

    folder: str
    names: tuple[str, ...] = ()
    listing: bool = False
    hidden: tuple[str, ...] = ()
    libraries: bool = False


async def inspect_interpreter(python: Path) -> Interpreter:
    """Inspect an interpreter by running it, isolated from the user's settings.

    Raises:
        OSError: if it cannot be executed.
        ValueError: if it fails or prints invalid output.
    """
    answer = await anyio.run_process(
        [str(python), "-I", "-S", "-c", _INSPECTION], check=False, env={}, stderr=subprocess.PIPE
    )
    if answer.returncode != 0:
        raise ValueError(f"{python} failed: {answer.stderr.decode(errors='replace').strip()[-500:]}")
    facts = json.loads(answer.stdout)
    return Interpreter(**{name: tuple(values) for name, values in facts.items()})


@cache
def interpreter_paths(interpreter: Interpreter) -> tuple[ReadablePath, ...]:
    """Return the paths that every worker of this interpreter may read, without the worker's own folders.

    Accesses the file system once per interpreter, so async code must call it in a thread.
    """
    paths = [_standard_library(folder) for folder in _outermost(interpreter.folders)]
    libraries = sorted({*interpreter.libraries, *_portable(interpreter.libraries)})
    paths += [evolve(_file(Path(library)), libraries=True) for library in libraries]
    paths += [_file(Path(archive)) for archive in interpreter.archives]
    paths += [_file(Path(path)) for path in _PUBLIC_FILES if Path(path).is_file()]
    paths += [ReadablePath(str(Path(path).resolve())) for path in _PUBLIC_FOLDERS if Path(path).is_dir()]
    return _merged(paths)


def _outermost(folders: Iterable[str]) -> list[str]:
    """Return the folders that are not inside another one of them."""
    every = [Path(folder) for folder in folders]
    return [str(folder) for folder in every if not any(other in folder.parents for other in every)]


def _standard_library(folder: str) -> ReadablePath:
    names = sorted(entry.name for entry in Path(folder).iterdir() if entry.resolve().is_relative_to(folder))
    return ReadablePath(
        folder,
        names=tuple(name for name in names if name not in _SITE_FOLDERS),
        listing=True,
        hidden=tuple(name for name in names if name in _SITE_FOLDERS),
    )


def _portable(libraries: Iterable[str]) -> list[str]:
    folders = {Path(library).parent for library in libraries}
    return [str(folder / name) for folder in folders for name in _PORTABLE_LIBRARIES if (folder / name).is_file()]


def _file(path: Path) -> ReadablePath:
    real = path.resolve()
    return ReadablePath(str(real.parent), (real.name,))


def _merged(paths: Iterable[ReadablePath]) -> tuple[ReadablePath, ...]:
    """Merge the entries of the same folder."""
    merged: dict[str, ReadablePath] = {}
    for path in paths:
        known = merged.get(path.folder)
        merged[path.folder] = path if known is None else _union(known, path)
    return tuple(merged[folder] for folder in sorted(merged))


def _union(one: ReadablePath, other: ReadablePath) -> ReadablePath:
    if not (one.names and other.names):
        return ReadablePath(one.folder)
    return ReadablePath(
        one.folder,
        names=tuple(sorted({*one.names, *other.names})),
        listing=one.listing or other.listing,
        hidden=(*one.hidden, *other.hidden),
        libraries=one.libraries or other.libraries,
    )
