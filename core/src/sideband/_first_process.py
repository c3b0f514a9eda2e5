"""Process 1 of a container: runs the command in a child process, passes signals on to it, and reaps orphans.

The kernel gives process 1 no default action for signals, and makes it the parent of all orphans.
"""

from __future__ import annotations

import os
import signal

_SENT_BY_KERNEL = 0x80


def continue_in_child() -> None:
    """Return in a child process. This process exits when the child does, and the kernel then kills all others."""
    signals = signal.valid_signals()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return
    while True:
        received = signal.sigwaitinfo(signals)
        if received.si_signo == signal.SIGCHLD:
            _reap(child)
        elif received.si_code != _SENT_BY_KERNEL:  # a terminal sends its signals to both processes
            os.kill(child, received.si_signo)


def _reap(child: int) -> None:
    """Reap all children that have exited. Exit if the command has."""
    while (ended := os.waitpid(-1, os.WNOHANG))[0]:
        if ended[0] == child:
            code = os.waitstatus_to_exitcode(ended[1])
            os._exit(code if code >= 0 else 128 - code)
