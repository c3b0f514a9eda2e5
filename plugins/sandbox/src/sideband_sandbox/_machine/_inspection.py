"""Whether this machine has what the walls are made of."""

from __future__ import annotations

import platform
import sys

from attrs import frozen

from ._landlock import MINIMUM_ABI, Landlock, landlock
from ._tables import ARCHITECTURES, Architecture


@frozen
class Machine:
    """What this kernel and processor offer.

    Args:
        architecture: numbers of system calls.
        landlock: what can be restricted.
    """

    architecture: Architecture
    landlock: Landlock


def inspect_machine() -> tuple[Machine | None, str]:
    """What can be used here, or the reason why nothing can: none on a system that another sandbox is made for."""
    if sys.platform != "linux":
        return None, ""
    architecture = ARCHITECTURES.get(platform.machine())
    if architecture is None:
        return None, f"there is no filter of system calls for the architecture {platform.machine()}"
    offered = landlock()
    if offered is None:
        return None, "the kernel has no Landlock, or it is not switched on (boot with landlock in lsm=)"
    if offered.abi < MINIMUM_ABI:
        return None, f"the kernel's Landlock is version {offered.abi}; {MINIMUM_ABI} is needed (Linux 6.2)"
    return Machine(architecture, offered), ""
