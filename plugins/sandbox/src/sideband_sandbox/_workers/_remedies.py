"""What to change where a machine makes no namespaces for workers: from the error and what the machine shows of itself.

Systems forbid them in different ways that all look alike from inside, mostly as EPERM. So every cause that can be seen
is named, and what can't be seen is only named if nothing else explains it.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import Factory, frozen

_APPARMOR = "kernel.apparmor_restrict_unprivileged_userns"
_DEBIAN = "kernel.unprivileged_userns_clone"
_KINDS = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
_SETTINGS = (_APPARMOR, _DEBIAN, *(f"user.max_{kind}_namespaces" for kind in _KINDS))
_ENOUGH = 10_000

_CAP_SYS_ADMIN = 21
_SECCOMP_FILTER = "2"
_ERROR = re.compile(r"\[Errno (\d+)\]")
_PROFILE = re.compile(r"(.+) \((enforce|kill)\)")

_REFUSED = (errno.EPERM, errno.EACCES)
_TOO_MANY = (errno.ENOSPC, errno.EUSERS)
_UNKNOWN = (errno.EINVAL, errno.ENOSYS)


@frozen
class NamespaceFacts:
    """What a machine shows about its way with namespaces.

    Args:
        root: whether the host runs as root.
        administrator: whether it has CAP_SYS_ADMIN.
        filtered: whether a filter of system calls is on the host already, as container runtimes install it.
        profile: the AppArmor profile that binds the host; empty if none does.
        settings: the kernel's settings that exist here, by their sysctl name.
    """

    root: bool = False
    administrator: bool = False
    filtered: bool = False
    profile: str = ""
    settings: Mapping[str, int] = Factory(dict)


def namespace_facts(process: Path = Path("/proc/self"), settings: Path = Path("/proc/sys")) -> NamespaceFacts:
    """Look. What can't be read counts as not there.

    Args:
        process: the folder in ``/proc`` of the host's process.
        settings: the folder of the kernel's settings.
    """
    status = dict(line.split(":\t", 1) for line in _read(process / "status").splitlines() if ":\t" in line)
    numbers = {name: _read(settings / name.replace(".", "/")).strip() for name in _SETTINGS}
    profile = _PROFILE.fullmatch(_read(process / "attr/current").strip("\0\n "))
    return NamespaceFacts(
        root=os.geteuid() == 0,
        administrator=bool(int(status.get("CapEff", "0"), 16) >> _CAP_SYS_ADMIN & 1),
        filtered=status.get("Seccomp", "").strip() == _SECCOMP_FILTER,
        profile=profile[1] if profile else "",
        settings={name: int(number) for name, number in numbers.items() if number.isdecimal()},
    )


def error_number(problem: str) -> int | None:
    """The number of the system's error in the text of a failed lock-down; ``None`` if it names none."""
    found = _ERROR.search(problem)
    return int(found[1]) if found else None


def namespace_remedy(number: int, facts: NamespaceFacts) -> str:
    """What to change so that namespaces can be made; empty if that would not help.

    Args:
        number: of the error with which making them failed.
        facts: from ``namespace_facts``.

    Example:
        >>> namespace_remedy(errno.EPERM, NamespaceFacts(settings={"kernel.unprivileged_userns_clone": 0}))
        'allow user namespaces: sysctl kernel.unprivileged_userns_clone=1'
    """
    if number in _TOO_MANY:
        return _room(facts)
    if number in _UNKNOWN:
        return "use a kernel that was built with CONFIG_USER_NS, CONFIG_PID_NS and CONFIG_NET_NS"
    if number not in _REFUSED:
        return ""
    return "; ".join(_permissions(facts)) or (
        "look for what forbids it: a chroot in which the host runs, SELinux or another security module (see the log of "
        "the kernel), or a supervisor such as systemd with RestrictNamespaces="
    )


def _room(facts: NamespaceFacts) -> str:
    none = [f"user.max_{kind}_namespaces" for kind in _KINDS if facts.settings.get(f"user.max_{kind}_namespaces") == 0]
    if none:
        return f"allow some: sysctl {' '.join(f'{name}={_ENOUGH}' for name in none)}"
    return "end what holds namespaces, or raise user.max_user_namespaces and its like; they nest 32 deep at most"


def _permissions(facts: NamespaceFacts) -> Iterator[str]:
    if facts.root and not facts.administrator:
        yield (
            "give the host CAP_SYS_ADMIN (Docker and Podman: --cap-add SYS_ADMIN), or run it as an ordinary user where "
            "user namespaces are allowed"
        )
    if not facts.root and facts.settings.get(_DEBIAN) == 0:
        yield f"allow user namespaces: sysctl {_DEBIAN}=1"
    if not facts.administrator and facts.settings.get(_APPARMOR) == 1:
        yield (
            "allow user namespaces to this interpreter by an AppArmor profile (docs/security.md has one), or to "
            f"everybody: sysctl {_APPARMOR}=0"
        )
    if facts.profile:
        yield (
            f"the AppArmor profile {facts.profile} binds the host: give it one that allows userns and mount (Docker: "
            "--security-opt apparmor=PROFILE)"
        )
    if facts.filtered:
        yield (
            "a filter of system calls binds the host: give it one that allows unshare, clone, mount, umount2, "
            "pivot_root, open_tree, move_mount and mount_setattr (Docker and Podman: --security-opt "
            "seccomp=PROFILE.json)"
        )


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
