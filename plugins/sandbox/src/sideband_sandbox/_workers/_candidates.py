"""The ways to isolate workers, strongest first, with their descriptions, remedies and gaps."""

from __future__ import annotations

import errno

from sideband.workers import Isolation

from .._machine._inspection import Machine
from ._plan import Variant
from ._remedies import error_number, namespace_facts, namespace_remedy


def candidates(*, as_root: bool) -> tuple[tuple[Isolation, Variant], ...]:
    """Return the tiers and variants to try, strongest first."""
    if as_root:
        return (
            (Isolation.FULL, Variant(namespaces=True, own_user=True)),
            (Isolation.FULL, Variant(namespaces=True)),
            # A container's root often has no CAP_SYS_ADMIN, but has it in a user namespace.
            (Isolation.FULL, Variant(namespaces=True, user_namespace=True)),
            (Isolation.NO_NAMESPACES, Variant(own_user=True)),
            (Isolation.NO_NAMESPACES, Variant()),
        )
    return (
        (Isolation.FULL, Variant(namespaces=True, user_namespace=True)),
        (Isolation.NO_NAMESPACES, Variant(user_namespace=True)),
        (Isolation.NO_NAMESPACES, Variant()),
    )


def describe(variant: Variant) -> str:
    """Return a short description for a hint."""
    if variant.namespaces:
        return "namespaces"
    if variant.own_user:
        return "a user ID of its own"
    if variant.user_namespace:
        return "a user namespace of its own"
    return "Landlock and a system call filter"


def remedy(variant: Variant, problem: str) -> str:
    """Return what has to change for a variant to work, as a suffix of the problem; empty if unknown.

    Args:
        variant: the variant that failed.
        problem: the reason.
    """
    number = error_number(problem)
    if "`identity`" in problem and number in (errno.EPERM, errno.EINVAL):
        # EPERM also occurs if the host is root in a user namespace without other users.
        text = "give the host CAP_SETUID and CAP_SETGID and, in a user namespace, more than one user ID"
    elif (variant.namespaces or variant.user_namespace) and number is not None:
        text = namespace_remedy(number, namespace_facts())
    elif variant.own_user:
        text = "make the interpreter and its folders readable by every user"
    else:
        text = ""
    return f"; {text}" if text else ""


def gaps(machine: Machine, variant: Variant, *, as_root: bool, has_cgroups: bool) -> tuple[str, ...]:
    """Return what a variant does not prevent, one sentence each."""
    found = ["kernel bugs and processor side channels are not prevented"]
    if variant.namespaces:
        found.append("a worker that knows the digest of another skill can learn whether it is stored here (stat)")
    else:
        found.append("a worker can learn whether a path exists, and its size, owner and times (stat)")
        found.append("a worker can list the names, not the contents, of the interpreter's own site-packages")
    if not machine.landlock.scopes:
        found.append(
            "only the system call filter prevents signals to other processes (Landlock is older than version 6)"
        )
    if as_root and not variant.own_user:
        found.append("workers run as root without capabilities; the kernel does not limit their threads")
    elif as_root:
        found.append("if only root can read a skill, its worker runs as root, without capabilities")
    elif not variant.user_namespace:
        found.append("the thread limit counts all processes of the user")
    if not has_cgroups:
        found.append("the host notices memory above the limit after a moment; the kernel does not enforce the limit")
    return tuple(found)
