"""The first ``sideband.toml`` of a distribution, from what is installed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from packaging.version import Version
from sideband import __version__
from sideband.plugins import EntryPoint

_TEXT = """\
# A distribution: exactly these plugins, with their configuration.
#
#     sideband dist lock      resolve it, and write sideband.lock
#     sideband dist sync      install what is locked into an environment, which then loads nothing else
#     sideband dist check     compare an environment with the lock
#
# Commit this file and sideband.lock. Everything here is explained in docs/distributions.md.

[dist]
name = {name}
core = "{core}"
python = ">=3.11"
# Package indexes that are searched before the default one, and folders of wheels beside this file:
# indexes = ["https://packages.example/pip"]
# wheels = ["wheels"]
# Tables and keys that users may set although the environment is locked:
adjustable = ["agent"]

# The packages whose plugins load: all that are installed here. Remove what you do not need.
[dist.packages]
{packages}
# A package of your own, built from its source: ours = {{ path = "../ours" }}

[policy]
isolation = "full"
# Without these guards, no host starts.
guards = [{guards}]

# Plugins that must not load, with the reason, which users see.
[policy.deny]
# "op.shell" = "programs are not allowed here"

# The package of each name that several provide.
[policy.conflicts]

# What may be granted without a question: skill, or "plugin:NAME" = capabilities.
[grants]

# The configuration of a plugin.
# [plugins.http]
"""


def initial_manifest(name: str, entry_points: Iterable[EntryPoint]) -> str:
    """Return a commented ``sideband.toml`` with all installed packages that have plugins."""
    points = list(entry_points)
    versions: Mapping[str, str] = {one.distribution: one.version for one in points}
    packages = "\n".join(
        f"{json.dumps(package)} = {{ version = {json.dumps(_compatible(version))} }}"
        if not package.replace("-", "").isalnum()
        else f"{package} = {json.dumps(_compatible(version))}"
        for package, version in sorted(versions.items())
    )
    guards = ", ".join(json.dumps(one.name) for one in sorted(points) if one.kind == "guard")
    return _TEXT.format(name=json.dumps(name), core=_compatible(__version__), packages=packages, guards=guards)


def _compatible(version: str) -> str:
    """Return the versions that are compatible with this one."""
    found = Version(version)
    return f"~={found.major}.{found.minor}"
