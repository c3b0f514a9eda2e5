"""The ways to lock workers down that are tried, strongest first, and how each is described to people."""

from __future__ import annotations

import errno

from sideband.workers import Isolation

from .._machine._inspection import Machine
from ._plan import Variant
from ._remedies import error_number, namespace_facts, namespace_remedy


def candidates(*, as_root: bool) -> tuple[tuple[Isolation, Variant], ...]:
    """What is tried, strongest first."""
    if as_root:
        return (
            (Isolation.FULL, Variant(namespaces=True, own_user=True)),
            (Isolation.FULL, Variant(namespaces=True)),
            (Isolation.NO_NAMESPACES, Variant(own_user=True)),
            (Isolation.NO_NAMESPACES, Variant()),
        )
    return (
        (Isolation.FULL, Variant(namespaces=True, user_namespace=True)),
        (Isolation.NO_NAMESPACES, Variant(user_namespace=True)),
        (Isolation.NO_NAMESPACES, Variant()),
    )


def describe(variant: Variant) -> str:
    """What is special about it, for a hint."""
    if variant.namespaces:
        return "own namespaces"
    if variant.own_user:
        return "a user id of its own"
    if variant.user_namespace:
        return "a user namespace of its own"
    return "Landlock and a filter of system calls"


def remedy(variant: Variant, problem: str) -> str:
    """What would have to change for it to hold, as the end of a sentence; empty if that is not known.

    Args:
        variant: what did not hold.
        problem: why.
    """
    number = error_number(problem)
    if "`identity`" in problem and number in (errno.EPERM, errno.EINVAL):
        # EPERM also where the host is root of a user namespace that has no other user
        text = "the host would need CAP_SETUID and CAP_SETGID and, in a user namespace, more than one user id"
    elif (variant.namespaces or variant.user_namespace) and number is not None:
        text = namespace_remedy(number, namespace_facts())
    elif variant.own_user:
        text = "the interpreter and its folders would have to be readable by every user"
    else:
        text = ""
    return f"; {text}" if text else ""


def gaps(machine: Machine, variant: Variant, *, as_root: bool, has_cgroups: bool) -> tuple[str, ...]:
    """What it does not stop, one sentence each."""
    found = ["bugs of the kernel and side channels of the processor are not stopped by any of this"]
    if variant.namespaces:
        found.append("a worker that knows the digest of another skill can learn whether that is stored here (stat)")
    else:
        found.append("a worker can learn whether a path exists, and its size, owner and times (stat)")
        found.append("a worker can list the names, not the contents, of the interpreter's own site-packages")
    if not machine.landlock.scopes:
        found.append("signals to others are stopped by the filter of system calls alone (Landlock before version 6)")
    if as_root and not variant.own_user:
        found.append(
            "workers keep the user id of root, without any capability; the kernel does not limit their threads"
        )
    elif as_root:
        found.append("a skill whose snapshot only root may read keeps root's user id, without any capability")
    elif not variant.user_namespace:
        found.append("the limit of threads counts all processes of the user")
    if not has_cgroups:
        found.append("memory above the limit is noticed by the host within a moment, not refused by the kernel at once")
    return tuple(found)
