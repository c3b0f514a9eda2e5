"""Detects the kernel and processor features that isolation needs."""

from __future__ import annotations

import os
import platform
import sys

from attrs import frozen

from ._landlock import MINIMUM_ABI, Landlock, landlock
from ._tables import ARCHITECTURES, Architecture


@frozen
class Machine:
    """The features of this kernel and processor.

    Args:
        architecture: the system call numbers.
        landlock: the access rights that Landlock can restrict.
    """

    architecture: Architecture
    landlock: Landlock


def inspect_machine() -> tuple[Machine | None, str]:
    """Return the features of this machine, or ``None`` and the reason, which is empty on systems other than Linux."""
    if sys.platform != "linux":
        return None, ""
    if problem := _problem_of_processes():
        return None, problem
    architecture = ARCHITECTURES.get(platform.machine())
    if architecture is None:
        return None, f"no system call filter for the architecture {platform.machine()}"
    offered = landlock()
    if offered is None:
        return None, "the kernel does not support Landlock, or it is not enabled (boot with landlock in lsm=)"
    if offered.abi < MINIMUM_ABI:
        return None, f"Landlock version {MINIMUM_ABI} or newer is required (Linux 6.2), got {offered.abi}"
    return Machine(architecture, offered), ""


def _problem_of_processes() -> str:
    """Return why process IDs in ``/proc`` cannot be used; empty if they can."""
    try:
        number = os.readlink("/proc/self")  # noqa: PTH115 - the text is a number
    except OSError:
        return "/proc is not mounted"
    if number != str(os.getpid()):
        return "/proc shows another process namespace than the host's (mount a new one, as unshare --mount-proc does)"
    return ""
