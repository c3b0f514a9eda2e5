"""Local files as plugins: each is loaded only with the content that the user trusts, by its digest."""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import sys
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, SourceFileLoader
from typing import Any

from ._errors import PluginFileInvalid
from ._records import PluginRecord

MAX_BYTES = 1 << 20
# Control characters, a line end that editors may not show, and marks that change the direction of the text.
_HIDDEN = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069]|\r(?!\n)")
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def local_path(file: str | os.PathLike[str]) -> str:
    """Return the absolute path of a file, in its real folder. It may be a link: the digest says what is behind it."""
    folder, name = os.path.split(os.fspath(file))
    return os.path.join(os.path.realpath(folder or "."), name)  # noqa: PTH118  a text, as in all records


def read_plugin_file(path: str) -> bytes:
    """Return the content of a file that is a plugin.

    Raises:
        PluginFileInvalid: if it cannot be read, is not a regular file, is too large, or may look in an editor like
            other code than Python runs.
    """
    try:
        descriptor = os.open(path, _FLAGS)
        with open(descriptor, "rb") as opened:  # noqa: PTH123  a descriptor
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise PluginFileInvalid(path, "it is not a regular file")
            content = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise PluginFileInvalid(path, f"it cannot be read: {error.strerror}") from error
    if len(content) > MAX_BYTES:
        raise PluginFileInvalid(path, f"it has more than {MAX_BYTES >> 20} MiB")
    if problem := _disguise(content):
        raise PluginFileInvalid(path, problem)
    return content


def _disguise(content: bytes) -> str:
    """Return why code may not be what a reader sees, or an empty string."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode()
    except (SyntaxError, UnicodeDecodeError):
        return "it is not UTF-8"
    if not encoding.startswith("utf-8"):
        return f"it declares the encoding {encoding}, and must be UTF-8"
    if found := _HIDDEN.search(text):
        return (
            f"line {text.count(chr(10), 0, found.start()) + 1} contains the invisible character U+{ord(found[0]):04X}"
        )
    return ""


def local_records(files: Mapping[str, str], trusted: Mapping[str, str]) -> Iterator[tuple[PluginRecord, str]]:
    """Yield the record of each local file, and why it must not be loaded, or an empty string.

    Args:
        files: the path of each file by ``kind.name``.
        trusted: the SHA-256 of each trusted file by path.
    """
    for label, file in files.items():
        kind, _, name = label.partition(".")
        path, digest, problem = local_path(file), "", ""
        try:
            digest = hashlib.sha256(read_plugin_file(path)).hexdigest()
        except PluginFileInvalid as error:
            problem = error.problem
        if digest and trusted.get(path) != digest:
            change = "has changed since it was trusted" if path in trusted else "is not trusted"
            problem = f"the file {change}; read it, and run `sideband plugins trust {path}`"
        yield _record(kind, name, path, digest), problem


def _record(kind: str, name: str, path: str, digest: str) -> PluginRecord:
    # One module for each path and content: another host in this process may have loaded an earlier content.
    identity = hashlib.sha256(f"{path}\0{digest}".encode(errors="surrogateescape")).hexdigest()[:32]
    return PluginRecord(
        kind,
        name,
        value=f"sideband_file_{identity}",
        distribution=path,
        version=digest[:12] or "0",
        location=os.path.dirname(path),  # noqa: PTH120  a text
        file=path,
        digest=digest,
    )


@contextmanager
def importable(record: PluginRecord) -> Iterator[None]:
    """Let the module of a local file be imported within the block."""
    finder = _FileFinder(record)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _FileFinder:
    """Finds the module of one file."""

    def __init__(self, record: PluginRecord) -> None:
        self._record = record

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002  the signature of finders
        if name != self._record.value:
            return None
        loader = _FileLoader(name, self._record.file, self._record.digest)
        # A module, never a package: its neighbors are not trusted.
        spec = ModuleSpec(name, loader, origin=self._record.file)
        spec.has_location = True
        return spec


class _FileLoader(SourceFileLoader):
    """Runs the bytes whose digest is trusted, and no bytecode, which other users of the folder could replace."""

    def __init__(self, name: str, path: str, digest: str) -> None:
        super().__init__(name, path)
        self._digest = digest

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        content = read_plugin_file(path)
        if hashlib.sha256(content).hexdigest() != self._digest:
            raise PluginFileInvalid(path, "it has changed since the host has checked that it is trusted")
        return self.source_to_code(content, path)
