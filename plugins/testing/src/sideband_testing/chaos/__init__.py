"""Chaos: plugins that hang, fail or are slow, full disks, torn files and killed workers, for tests with hosts.

A fault is an object that a faulty plugin calls: ``WaitForever()``, ``Slow(0.1)``, ``Crash(error)``. It misbehaves
from its ``at``-th call on; ``calls`` counts them.
"""

from ._faults import Crash, Fault, SelfCancel, Slow, WaitForever
from ._files import file_size_limit, tear
from ._plugins import faulty_hook, faulty_op, faulty_store
from ._workers import WorkerKiller

__all__ = [
    "Crash",
    "Fault",
    "SelfCancel",
    "Slow",
    "WaitForever",
    "WorkerKiller",
    "faulty_hook",
    "faulty_op",
    "faulty_store",
    "file_size_limit",
    "tear",
]
