"""Suggests what to change on a machine that does not permit namespaces, from the error and the machine's settings.

Systems forbid namespaces in different ways that mostly look the same from inside: EPERM. So each detectable cause is
named, and undetectable causes are named only if no other cause explains the error.
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
    """The facts about a machine that affect namespaces.

    Args:
        root: whether the host runs as root.
        administrator: whether the host has CAP_SYS_ADMIN.
        filtered: whether a system call filter already applies to the host, like those of container runtimes.
        profile: the AppArmor profile that confines the host; empty without one.
        settings: the kernel settings that exist here, by sysctl name.
    """

    root: bool = False
    administrator: bool = False
    filtered: bool = False
    profile: str = ""
    settings: Mapping[str, int] = Factory(dict)


def namespace_facts(process: Path = Path("/proc/self"), settings: Path = Path("/proc/sys")) -> NamespaceFacts:
    """Read the facts. Unreadable files count as missing.

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
    """Return the ``errno`` in the message of a failed lockdown, or ``None`` if it contains none."""
    found = _ERROR.search(problem)
    return int(found[1]) if found else None


def namespace_remedy(number: int, facts: NamespaceFacts) -> str:
    """Return what to change so that namespaces can be created; empty if the error has another cause.

    Args:
        number: the ``errno`` of the failed attempt to create them.
        facts: the result of ``namespace_facts``.

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
        "check for a chroot around the host, SELinux or another security module (see the kernel log), or a service "
        "manager such as systemd with RestrictNamespaces="
    )


def _room(facts: NamespaceFacts) -> str:
    none = [f"user.max_{kind}_namespaces" for kind in _KINDS if facts.settings.get(f"user.max_{kind}_namespaces") == 0]
    if none:
        return f"raise the limit: sysctl {' '.join(f'{name}={_ENOUGH}' for name in none)}"
    return "end processes that use namespaces, or raise user.max_*_namespaces; they nest at most 32 levels deep"


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
            "allow user namespaces for this interpreter with an AppArmor profile (docs/security.md has one), or for "
            f"all programs: sysctl {_APPARMOR}=0"
        )
    if facts.profile:
        yield (
            f"the AppArmor profile {facts.profile} confines the host: use one that allows userns and mount (Docker: "
            "--security-opt apparmor=PROFILE)"
        )
    if facts.filtered:
        yield (
            "a system call filter confines the host: use one that allows unshare, mount, umount2, pivot_root, "
            "open_tree, move_mount, mount_setattr and sethostname (Docker and Podman: --security-opt "
            "seccomp=PROFILE.json; docs/containers.md has one)"
        )


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
