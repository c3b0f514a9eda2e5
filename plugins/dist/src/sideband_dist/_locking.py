"""Make the lock of a distribution: resolve its packages, install them aside, and describe their plugins."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote, urlsplit

from attrs import frozen
from packaging.utils import canonicalize_name

from ._errors import DistError, DistRefused
from ._exporting import lock_requirements, pylock_text
from ._files import DistManifest, read_dist_lock
from ._installed import InstalledPackage, installed_packages, package_folders
from ._model import DistLock, DistLockPackage, DistLockPlugin
from ._uv import PackageSources, build_wheel, create_environment, install, resolve

_CORE = "sideband-core"
_WHEEL = re.compile(r"[\w.+!-]+\.whl")
_SHA = re.compile(r"[0-9a-f]{64}")
_AT_START = ("guard", "hook")


@frozen
class LockOptions:
    """How to lock.

    Args:
        upgrade: whether to choose the newest versions, instead of those in the lock that exists.
        cached: whether to download nothing that is not in the cache of uv.
        isolated: whether local packages are built in an environment of their own, with what they need to be built.
    """

    upgrade: bool = False
    cached: bool = False
    isolated: bool = True


def make_lock(manifest: DistManifest, existing: Path, options: LockOptions) -> DistLock:
    """Return the lock of a distribution.

    The code of its plugins runs, with the rights of the user: to be locked is to be trusted.

    Args:
        manifest: the ``sideband.toml``.
        existing: the lock to take versions from, if it exists.
        options: how to lock.

    Raises:
        DistError: if the packages cannot be installed, or do not make a distribution.
    """
    settings = manifest.locked_settings()
    with TemporaryDirectory(prefix="sideband-dist-") as name:
        folder = Path(name)
        local = build_local(manifest, folder / "wheels", options)
        sources = PackageSources.of(
            manifest.dist, manifest.folder, more={wheel.parent for wheel in local.values()}, cached=options.cached
        )
        if existing.exists() and not options.upgrade:
            (folder / "pylock.toml").write_text(pylock_text(read_dist_lock(existing)), encoding="utf-8")
        resolved = resolve(_requirements(manifest, local), sources, manifest.dist.python, folder)
        packages = list(_packages(tomllib.loads(resolved), manifest))
        environment = folder / "environment"
        create_environment(environment, sources)
        install(environment, lock_requirements(packages), sources, folder)
        installed = installed_packages(package_folders(environment))
        plugins = _plugins(_described(environment, manifest), manifest)
        packages = [_with_files(one, installed) for one in packages]
    dist = manifest.dist.model_dump(exclude_unset=True, exclude={"packages", "core"})
    return DistLock(
        manifest=manifest.digest,
        dist={"python": manifest.dist.python, **dist},
        settings=settings,
        plugins=plugins,
        packages=packages,
    )


def build_local(manifest: DistManifest, out: Path, options: LockOptions) -> Mapping[str, Path]:
    """Return the wheel of each local package, by normalized name. Folders are built.

    Raises:
        DistInvalid: if a path does not exist.
        InstallFailed: if a package cannot be built.
    """
    found = {}
    sources = PackageSources.of(manifest.dist, manifest.folder, cached=options.cached)
    for name, package in sorted(manifest.dist.packages.items()):
        if package.path is None:
            continue
        path = manifest.folder / package.path
        if not path.exists():
            raise manifest.invalid(f"`dist.packages.{name}.path` is {path}, which does not exist", "correct the path")
        is_wheel = path.suffix == ".whl"
        wheel = path if is_wheel else build_wheel(path, out / name, sources, isolated=options.isolated)
        if canonicalize_name(wheel.name.partition("-")[0]) != canonicalize_name(name):
            raise manifest.invalid(f"`dist.packages.{name}.path` is the package {wheel.name}", "correct the name")
        found[str(canonicalize_name(name))] = wheel
    return found


def _requirements(manifest: DistManifest, local: Mapping[str, Path]) -> str:
    lines = [f"{_CORE}{manifest.dist.core}"]
    for name, package in manifest.dist.packages.items():
        extras = f"[{','.join(package.extras)}]" if package.extras else ""
        wheel = local.get(canonicalize_name(name))
        lines.append(f"{name}{extras} @ {wheel.absolute().as_uri()}" if wheel else f"{name}{extras}{package.version}")
    return "\n".join([*lines, ""])


def _packages(resolved: Mapping[str, Any], manifest: DistManifest) -> Iterator[DistLockPackage]:
    """Yield the packages of a ``pylock.toml``, without the places that their wheels come from."""
    paths = {canonicalize_name(name): one.path for name, one in manifest.dist.packages.items() if one.path is not None}
    for package in sorted(resolved["packages"], key=lambda one: (one["name"], one["version"])):
        wheels = package.get("wheels") or ([package["archive"]] if "archive" in package else [])
        hashes = {_file_name(wheel): wheel.get("hashes", {}).get("sha256", "") for wheel in wheels}
        if not hashes or not all(map(_WHEEL.fullmatch, hashes)) or not all(map(_SHA.fullmatch, hashes.values())):
            problem = f"the index has no wheels of {package['name']} {package['version']} with a SHA-256"
            raise DistRefused([problem], hint="build its wheel, and put it into a folder that `[dist] wheels` names")
        yield DistLockPackage(
            name=package["name"],
            version=package["version"],
            marker=package.get("marker", ""),
            path=paths.get(package["name"], ""),
            wheels="".join(f"{digest}  {name}\n" for name, digest in sorted(hashes.items())),
        )


def _file_name(wheel: Mapping[str, Any]) -> str:
    name = wheel.get("name") or Path(unquote(urlsplit(wheel.get("url", "")).path) or wheel.get("path", "")).name
    return str(name)


def _with_files(package: DistLockPackage, installed: Mapping[str, InstalledPackage]) -> DistLockPackage:
    """Return a package with the hashes of its files, if its version is installed here."""
    found = installed.get(package.name)
    if found is None or found.version != package.version:
        return package
    requires = [name for name in found.requires if name in installed]
    return package.model_copy(update={"requires": requires, "files": found.hashes()})


def _described(environment: Path, manifest: DistManifest) -> Mapping[str, Any]:
    """Return what the plugins of an environment say about themselves, which imports their code in another process."""
    policy = manifest.settings.policy
    given = {
        "deny": policy.deny,
        "only": policy.only,
        "conflicts": policy.conflicts,
        "config": manifest.raw.get("plugins", {}),
    }
    done = subprocess.run(  # noqa: S603  its own arguments
        [str(environment / "bin" / "python"), "-I", str(Path(__file__).with_name("_describe.py"))],
        input=json.dumps(given, default=str),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        cwd=environment,
        env={"PATH": os.environ.get("PATH", ""), "HOME": str(environment)},
    )
    try:
        found: Mapping[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError) as error:
        problem = " ".join(done.stderr.split())[-1_000:] or f"its process exited with {done.returncode}"
        hint = "check that all packages support this version of sideband-core"
        raise DistError(f"the plugins cannot be described: {problem}", hint=hint) from error
    return found


def _plugins(described: Mapping[str, Any], manifest: DistManifest) -> list[DistLockPlugin]:
    """Return the plugins of the lock.

    Raises:
        DistRefused: if one is unusable, its package is not named, or a required guard is missing.
    """
    named = {canonicalize_name(name) for name in manifest.dist.packages}
    problems, unnamed, usable = list(described["problems"]), set(), []
    for one in described["plugins"]:
        label, package = f"{one['kind']}.{one['name']}", canonicalize_name(one["distribution"])
        if one["state"] == "denied":
            continue
        if one["state"] in ("failed", "incompatible"):
            problems.append(f"{label} ({one['distribution']} {one['version']}): {one['reason']}")
        elif package not in named:
            unnamed.add(str(package))
        else:
            usable.append({**one, "package": package})
    problems += [f"{name} has plugins, but is not in `[dist.packages]`" for name in sorted(unnamed)]
    guards = {one["name"] for one in usable if one["kind"] == "guard"}
    problems += [
        f"the required guard `{one}` is missing" for one in manifest.settings.policy.guards if one not in guards
    ]
    if problems:
        hint = (
            "name the package in `[dist.packages]` or deny its plugins in `[policy.deny]`, settle a contested name in "
        )
        raise DistRefused(list(dict.fromkeys(problems)), hint=hint + "`[policy.conflicts]`, and add missing guards")
    return list(_locked_plugins(usable))


def _locked_plugins(usable: Sequence[Mapping[str, Any]]) -> Iterator[DistLockPlugin]:
    at_start = [
        (one["kind"], one["name"])
        for kind in _AT_START
        for one in sorted(usable, key=lambda one: str(one["name"]))
        if one["kind"] == kind
    ]
    for one in sorted(usable, key=lambda one: (one["kind"], one["name"])):
        key = (one["kind"], one["name"])
        fields = {name: one[name] for name in ("kind", "name", "value", "api", "package", "uses", "ops") if one[name]}
        if key in at_start:
            fields["order"] = at_start.index(key) + 1
        yield DistLockPlugin(**fields)


def lock_for(lock: DistLock, environment: Path) -> DistLock:
    """Return a lock with the files of the platform-specific packages that are installed in an environment.

    Their wheels were installed with the hashes in the lock. What every platform has in common stays as it is.
    """
    installed = installed_packages(package_folders(environment))
    packages = [one if is_pure(one) else _with_files(one, installed) for one in lock.packages]
    return lock.model_copy(update={"packages": packages})


def is_pure(package: DistLockPackage) -> bool:
    """Return whether a package has the same files on each platform."""
    return all(line.endswith("-none-any.whl") for line in package.wheels.splitlines())
