"""Write the SDK folder of workers: the runtime and one generated module per op family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Lock

from ..state import StoredFile, publish_folder
from ._sdk_render import (
    FAILED,
    PACKAGE,
    SHARED,
    extra_module,
    render_family,
    render_shared,
    render_stub,
    sdk_functions,
)
from ._spec import OpFamily

# `ast` of CPython 3.11 has one count of its recursion for all threads, and fails if two of them parse.
_PARSING = Lock()

__all__ = ["render_family", "render_stub", "sdk_functions", "stub_files", "write_sdk"]


def write_sdk(
    folder: Path,
    families: Iterable[OpFamily],
    runtime_files: Mapping[str, Path],
    *,
    reasons: Mapping[str, str] | None = None,
) -> Path:
    """Write the SDK for these families to ``folder/<digest>`` and return that path.

    The path is the first entry of a worker's import path. The folder is created atomically and reused for equal
    content, even if several hosts write it concurrently. This function blocks on disk I/O; call it in a thread.

    Args:
        folder: the parent folder of SDKs, ``SIDEBAND_HOME/sdk``.
        families: the families that a skill can import from ``sideband.skill``.
        runtime_files: the source file for each relative path in the SDK (``sideband.workers.runtime_files()``).
        reasons: the reason, by family, why the family could not be loaded; importing it raises ``ImportError`` with
            this reason.

    Raises:
        SdkInvalid: if the module of a family cannot be generated.
        FolderFailed: if the folder cannot be written or was tampered with.

    Example:
        >>> sdk = write_sdk(home / "sdk", [family], runtime_files(), reasons={"sql": "its plugin failed to import"})
        >>> (sdk / "sideband_sdk" / "http.py").exists()
        True
    """
    families = tuple(families)
    texts = {f"{PACKAGE}/__init__.py": PACKAGE_SOURCE}
    if (shared := render_shared(families, stub=False)) is not None:
        texts[f"{PACKAGE}/{SHARED}.py"] = shared
    for name, reason in (reasons or {}).items():
        texts[f"{PACKAGE}/{name}.py"] = FAILED.format(message=repr(f"`{name}` is not available: {reason}"))
    for family in families:
        with _PARSING:
            texts[f"{PACKAGE}/{family.name}.py"] = render_family(family)
        if family.sdk is not None:
            texts[f"{PACKAGE}/{extra_module(family.name)}.py"] = family.sdk.read_text(encoding="utf-8")
    generated = [StoredFile(path, text.encode()) for path, text in texts.items()]
    runtime = [StoredFile(path, source.read_bytes()) for path, source in runtime_files.items()]
    return publish_folder(folder, [*generated, *runtime])


def stub_files(families: Iterable[OpFamily]) -> dict[str, str]:
    """Return the stubs of the package ``sideband_sdk`` for editors and type checkers, by file name.

    They belong beside the modules that ``write_sdk`` writes. Type checkers find the families in ``sideband.skill``.

    Raises:
        SdkInvalid: if the stub of a family cannot be generated.

    Example:
        >>> sorted(stub_files([family]))
        ['__init__.pyi', 'http.pyi', 'py.typed']
    """
    families = tuple(families)
    stubs = {family.name: render_stub(family) for family in families}
    shared = render_shared(families, stub=True)
    names = sorted(stubs)
    exports = [f"from . import {name} as {name}" for name in names]
    package = "\n".join(['"""The op families of the host."""', "", *exports, "", f"__all__ = {names!r}", ""])
    modules = {**stubs, **({SHARED: shared} if shared else {}), "__init__": package}
    return {**{f"{name}.pyi": text for name, text in modules.items()}, "py.typed": ""}


PACKAGE_SOURCE = '''\
"""Helpers of the generated modules."""

from __future__ import annotations

from typing import Any


class Default:
    """A placeholder for an omitted argument, for which the op's default applies. Its repr is that default."""

    def __init__(self, *value: object) -> None:
        self.text = repr(value[0]) if value else "..."

    def __repr__(self) -> str:
        return self.text


default: Any = Default  # any annotation accepts it


def given(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that were passed."""
    return {name: value for name, value in arguments.items() if not isinstance(value, Default)}
'''
