"""The SDK folder of a worker: the runtime, and one generated module per op family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ..state import StoredFile, publish_folder
from ._sdk_render import FAILED, PACKAGE, extra_module, render_family
from ._spec import OpFamily

__all__ = ["render_family", "write_sdk"]


def write_sdk(
    folder: Path,
    families: Iterable[OpFamily],
    runtime_files: Mapping[str, Path],
    *,
    reasons: Mapping[str, str] | None = None,
) -> Path:
    """Write the SDK for these families to ``folder/<digest>`` and return that path, first on a worker's import path.

    It is written once for equal content, all or nothing, also when several hosts do it at once. It blocks on the
    disk, so async code runs it in a thread.

    Args:
        folder: where SDKs are kept, ``HOME/sdk``.
        families: what a skill can import from ``sideband.skill``.
        runtime_files: relative path in the SDK to the file that goes there (``sideband.workers.runtime_files()``).
        reasons: family name to why it could not be loaded; importing such a family raises ``ImportError`` with it.

    Raises:
        SdkInvalid: a family can't be written as Python; names it and says why.
        FolderFailed: the folder can't be written, or was tampered with.

    Example:
        >>> sdk = write_sdk(home / "sdk", [family], runtime_files(), reasons={"sql": "its plugin failed to import"})
        >>> (sdk / "sideband_sdk" / "http.py").exists()
        True
    """
    texts = {f"{PACKAGE}/__init__.py": PACKAGE_SOURCE}
    for name, reason in (reasons or {}).items():
        texts[f"{PACKAGE}/{name}.py"] = FAILED.format(message=repr(f"`{name}` is not available: {reason}"))
    for family in families:
        texts[f"{PACKAGE}/{family.name}.py"] = render_family(family)
        if family.sdk is not None:
            texts[f"{PACKAGE}/{extra_module(family.name)}.py"] = family.sdk.read_text(encoding="utf-8")
    generated = [StoredFile(path, text.encode()) for path, text in texts.items()]
    runtime = [StoredFile(path, source.read_bytes()) for path, source in runtime_files.items()]
    return publish_folder(folder, [*generated, *runtime])


PACKAGE_SOURCE = '''\
"""What the generated modules share."""

from __future__ import annotations

from typing import Any


class Default:
    """Stands for an argument that was not given, so that the op's own default holds. Shows as that default."""

    def __init__(self, *value: object) -> None:
        self.text = repr(value[0]) if value else "..."

    def __repr__(self) -> str:
        return self.text


default: Any = Default  # any annotation accepts it


def given(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments that were given."""
    return {name: value for name, value in arguments.items() if not isinstance(value, Default)}
'''
