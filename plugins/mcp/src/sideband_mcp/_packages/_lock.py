"""What is installed for a server: exact packages with hashes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from attrs import frozen

from .._models import digest_of

_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")
_INTEGRITY = re.compile(r"sha512-[A-Za-z0-9+/]{86}==\Z")
_NEEDS = ("dependencies", "optionalDependencies", "peerDependencies")
_ELSEWHERE = re.compile("[:/]")  # an address, a repository or a file
_MODULES = "node_modules/"


@frozen
class PackageLock:
    """The exact packages that a server needs.

    Attributes:
        registry: where they come from.
        text: the lock, as the installer reads it.
    """

    registry: Literal["npm", "pypi"]
    text: str

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages with their versions, a line each, with its hash, or the number and the digest of its hashes.

        A package of PyPI can have a hundred files, one for each system. A person cannot read all hashes.
        """
        return tuple(" ".join([name, *_short(hashes)]) for name, *hashes in self._hashed())

    @property
    def digest(self) -> str:
        """The digest of all names, versions and hashes. It does not depend on the address of the registry."""
        return digest_of([self.registry, *(" ".join(one) for one in self._hashed())])

    def _hashed(self) -> list[tuple[str, ...]]:
        return sorted({*(_of_pypi(self.text) if self.registry == "pypi" else _of_npm(self.text))})


def _short(hashes: Sequence[str]) -> Sequence[str]:
    return hashes if len(hashes) < 2 else [f"sha256:{digest_of(list(hashes))}", f"({len(hashes)} files)"]


def _of_pypi(text: str) -> Iterator[tuple[str, ...]]:
    found = list(_REQUIREMENT.finditer(text))
    for one, following in zip(found, [*found[1:], None], strict=True):
        block = text[one.start() : following.start() if following else len(text)]
        yield f"{one[1]}=={one[2]}", *sorted(_HASH.findall(block))


def _of_npm(text: str) -> Iterator[tuple[str, ...]]:
    for path, one in json.loads(text)["packages"].items():
        if path:
            # A package may be installed under the name of another one.
            name = one.get("name") or path.rpartition(_MODULES)[2]
            yield f"{name}@{one['version']}", one["integrity"]


def check_npm(text: str) -> None:
    """Check that each package of a lock of npm is from the registry, with a hash.

    Raises:
        ValueError: if one is from a repository, a file or an address.
    """
    content: dict[str, Any] = json.loads(text)
    for path, one in content["packages"].items():
        name = path.rpartition(_MODULES)[2]
        if path and (not _INTEGRITY.match(str(one.get("integrity", ""))) or one.get("link") or "inBundle" in one):
            raise ValueError(f"`{name}` is not from the registry of npm, or has no SHA-512 hash")
        for kind in _NEEDS:
            for needed, version in one.get(kind, {}).items():
                if not version.startswith("npm:") and _ELSEWHERE.search(version):
                    raise ValueError(f"`{needed}`, which `{name}` needs, is not from the registry of npm")
