"""Lets a program execute its own file, and no other one.

Uses the standard library only and is loaded by path, like ``_lockdown.py``, which is passed in as ``kernel``. A filter
alone cannot distinguish the first call of ``execve`` from later ones. So this filter suspends each call and asks a
listener, which the program's process sends to its parent before it executes anything. The parent lets the first call
continue and closes the listener. From then on, the kernel answers each call with ENOSYS.
"""

from __future__ import annotations

import base64
import ctypes
import fcntl
import os
import select
import socket
import struct
from typing import Any

_SET_MODE_FILTER = 1
_NEW_LISTENER = 8
# struct seccomp_notif: the ID of the notification, the process ID, flags, struct seccomp_data.
_NOTIFICATION = "=QII64x"
_RECEIVE = 0xC0502100
# struct seccomp_notif_resp: the ID, a result, an error, flags.
_ANSWER = "=QqiI"
_SEND = 0xC0182101
_CONTINUE = 1


def suspend(kernel: Any, number: int, code: str, parent: socket.socket) -> None:
    """Suspend each call of ``execve`` from now on, and send the listener to the parent.

    Args:
        kernel: the lockdown module.
        number: the number of the system call ``seccomp``.
        code: the filter, base64-encoded.
        parent: the socket to the parent.
    """
    program = base64.b64decode(code)
    instructions = ctypes.create_string_buffer(program, len(program))
    filters = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    listener = kernel.system_call("suspend execve", number, _SET_MODE_FILTER, _NEW_LISTENER, filters)
    socket.send_fds(parent, [b"x"], [listener])
    os.close(listener)


def let_first_continue(child: socket.socket) -> None:
    """Let the child execute its file, and close the listener. Return at once if the child has failed before."""
    _, listeners, _, _ = socket.recv_fds(child, 1, 1)
    for listener in listeners:
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        if any(events & select.POLLIN for _, events in poll.poll()):
            notification = bytearray(struct.calcsize(_NOTIFICATION))
            fcntl.ioctl(listener, _RECEIVE, notification)
            identifier = struct.unpack(_NOTIFICATION, notification)[0]
            fcntl.ioctl(listener, _SEND, struct.pack(_ANSWER, identifier, 0, 0, _CONTINUE))
        os.close(listener)
