"""Write a lock in the formats of other tools. No address is in them that the team did not name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tomli_w
from packaging.utils import canonicalize_name
from sideband.plugins import LOCK_FILE

from ._model import DistLock, DistLockPackage

WHEELS = "wheels"
"""The folder for wheels beside exported files."""

_DOCKERFILE = """\
# The distribution {name}. Written by `sideband dist export --format dockerfile`.
#
# Build it in a folder with {lock} and requirements.txt, which is written by
#     sideband dist export --format requirements --output requirements.txt
# Wheels that no index has, such as those of local packages, belong in its folder `{wheels}`.
ARG BASE=python:{python}-slim
FROM ${{BASE}} AS build
COPY . /build/
RUN mkdir -p /build/{wheels} && python -m venv --without-pip /opt/{name}
RUN python -m pip --python /opt/{name} install --no-deps --require-hashes --only-binary :all: \\
    --find-links /build/{wheels} --requirement /build/requirements.txt
RUN cp /build/{lock} /opt/{name}/{lock}
# Fail now if something differs from the lock.
RUN /opt/{name}/bin/python -I -c "{check}"

FROM ${{BASE}}
COPY --from=build /opt/{name} /opt/{name}
# -I ignores variables such as PYTHONPATH, and the working directory.
ENTRYPOINT ["/opt/{name}/bin/python", "-I", "-m", "sideband"]
"""
_CHECK = (
    "import sys; from sideband.plugins import environment_lock, package_differences; lock = environment_lock(); "
    "sys.exit('; '.join(one for name in lock.packages if lock.package(name).metadata "
    "for one in package_differences(lock, name)) or 0)"
)


def requirements_text(lock: DistLock) -> str:
    """Return a ``requirements.txt`` with hashes."""
    dist = lock.dist
    others = list(dist.indexes)
    lines = [f"--index-url {others.pop(0)}"] if others and not dist.default_index else []
    lines += [f"--extra-index-url {one}" for one in others]
    lines += ["--no-index"] if dist.offline else []
    lines += [f"--find-links {one}" for one in dist.wheels]
    return "\n".join([*lines, lock_requirements(lock.packages)])


def lock_requirements(packages: Iterable[DistLockPackage]) -> str:
    """Return the requirements of packages, with hashes."""
    lines = []
    for package in packages:
        marker = f" ; {package.marker}" if package.marker else ""
        hashes = " \\\n".join(f"    --hash=sha256:{digest}" for digest, _ in package.wheel_hashes())
        lines.append(f"{package.name}=={package.version}{marker} \\\n{hashes}\n")
    return "".join(lines)


def pylock_text(lock: DistLock) -> str:
    """Return a ``pylock.toml`` (PEP 751), whose wheels are in a folder beside it."""
    packages: list[dict[str, Any]] = []
    # With two places, it is unknown which one a package came from, and a wrong one could be another package.
    only = lock.dist.indexes if len(lock.dist.indexes) == 1 and not lock.dist.default_index else ()
    for package in lock.packages:
        entry: dict[str, Any] = {"name": package.name, "version": package.version}
        if package.marker:
            entry["marker"] = package.marker
        if only and not package.path and not lock.dist.offline:
            entry["index"] = only[0]
        entry["wheels"] = [
            {"name": name, "path": f"{WHEELS}/{name}", "hashes": {"sha256": digest}}
            for digest, name in package.wheel_hashes()
        ]
        packages.append(entry)
    data = {"lock-version": "1.0", "created-by": "sideband-dist", "packages": packages}
    if lock.dist.python:
        data["requires-python"] = lock.dist.python
    return tomli_w.dumps(data)


def dockerfile_text(lock: DistLock) -> str:
    """Return a Dockerfile for the distribution."""
    python = next((line for line in lock.dist.python.replace("~=", ">=").split(",") if ">=" in line), ">=3.11")
    version = ".".join(python.removeprefix(">=").split(".")[:2])
    name = canonicalize_name(lock.dist.name or "distribution")
    return _DOCKERFILE.format(name=name, lock=LOCK_FILE, wheels=WHEELS, python=version, check=_CHECK)


def cyclonedx_text(lock: DistLock) -> str:
    """Return a bill of materials as CycloneDX 1.6 in JSON."""
    from ._sbom import bill_of_materials  # noqa: PLC0415  its library is slow to import

    return bill_of_materials(lock)


FORMATS: Mapping[str, Callable[[DistLock], str]] = {
    "requirements": requirements_text,
    "pylock": pylock_text,
    "dockerfile": dockerfile_text,
    "cyclonedx": cyclonedx_text,
}
