"""Evaluates a probe process: its own report, and its status as the kernel shows it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

# The prefix of the folders that probe processes run in.
PREFIX = "sideband-probe-"

# The process IDs of a process: one for each process namespace, from that of the host to its own.
_NUMBERS = "NSpid"
_EXPECTED_STATUS = {"Seccomp": "2", "NoNewPrivs": "1", "CapEff": "0" * 16, "CapPrm": "0" * 16, "CapAmb": "0" * 16}


def kernel_status(pid: int) -> dict[str, str]:
    """Return the security fields of ``/proc/PID/status``, which the process itself cannot forge."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return {name: status.get(name, "") for name in (*_EXPECTED_STATUS, _NUMBERS)}


def problem_of(kind: str, report: Mapping[str, Any], status: Mapping[str, str], *, namespaces: bool) -> str:
    """Return why the isolation is insufficient, or an empty string if it holds.

    Args:
        kind: the kind of process, ``worker`` or ``program``.
        report: ``must_fail`` and ``must_work``: for each attempt the error that stopped it, ``None`` if it succeeded.
        status: the result of ``kernel_status``.
        namespaces: whether it must be in a process namespace of its own, in which the host has no number.
    """
    wrong = [f"{name} is {status[name]}" for name, expected in _EXPECTED_STATUS.items() if status[name] != expected]
    if namespaces and len(status[_NUMBERS].split()) < 2:
        wrong.append("it is in the host's process namespace")
    if wrong:
        return f"the kernel reports for the {kind}: {', '.join(wrong)}"
    succeeded = [name for name, outcome in report["must_fail"].items() if outcome is None]
    if succeeded:
        return f"a {kind} could {', '.join(succeeded)}"
    broken = {name: outcome for name, outcome in report["must_work"].items() if outcome is not None}
    if broken:
        return f"a {kind} could not {', '.join(broken)} ({next(iter(broken.values()))})"
    return ""


def proofs_of(report: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the attempts that failed, one sentence each."""
    return tuple(f"could not {name}" for name, outcome in report["must_fail"].items() if outcome is not None)
