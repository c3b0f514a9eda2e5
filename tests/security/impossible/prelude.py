"""Helpers that are prepended to the code of hostile skills. Standard library only."""

import asyncio  # noqa: F401  the skills use it
import ctypes
import errno
import gc
import mmap
import os
import platform
import socket
import sys  # noqa: F401  the skills use it
from types import SimpleNamespace

from sideband.skill import tool  # noqa: F401  the skills use it

NUMBERS = {
    "x86_64": {
        "acct": 163, "add_key": 248, "adjtimex": 159, "bpf": 321, "clock_settime": 227, "clone": 56, "clone3": 435,
        "copy_file_range": 326, "execveat": 322, "fanotify_init": 300, "fchmodat2": 452, "fsopen": 430,
        "get_robust_list": 274, "inotify_init1": 294, "io_setup": 206, "io_uring_setup": 425, "ioprio_set": 251,
        "kcmp": 312, "keyctl": 250, "memfd_create": 319, "migrate_pages": 256, "mount": 165, "mount_setattr": 442,
        "move_pages": 279, "mq_open": 240, "msgget": 68, "name_to_handle_at": 303, "open_by_handle_at": 304,
        "open_tree": 428, "openat2": 437, "perf_event_open": 298, "personality": 135, "pidfd_getfd": 438,
        "pidfd_open": 434, "pidfd_send_signal": 424, "pivot_root": 155, "process_madvise": 440,
        "process_vm_readv": 310, "process_vm_writev": 311, "ptrace": 101, "quotactl": 179, "reboot": 169,
        "request_key": 249, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297, "sched_setattr": 314, "seccomp": 317,
        "semget": 64, "setitimer": 38, "setns": 308, "settimeofday": 164, "shmget": 29, "swapon": 167, "syslog": 103,
        "tgkill": 234, "timer_create": 222, "tkill": 200, "umount2": 166, "unshare": 272, "userfaultfd": 323,
        "vfork": 58,
    },
    "aarch64": {
        "acct": 89, "add_key": 217, "adjtimex": 171, "bpf": 280, "clock_settime": 112, "clone": 220, "clone3": 435,
        "copy_file_range": 285, "execveat": 281, "fanotify_init": 262, "fchmodat2": 452, "fsopen": 430,
        "get_robust_list": 100, "inotify_init1": 26, "io_setup": 0, "io_uring_setup": 425, "ioprio_set": 30,
        "kcmp": 272, "keyctl": 219, "memfd_create": 279, "migrate_pages": 238, "mount": 40, "mount_setattr": 442,
        "move_pages": 239, "mq_open": 180, "msgget": 186, "name_to_handle_at": 264, "open_by_handle_at": 265,
        "open_tree": 428, "openat2": 437, "perf_event_open": 241, "personality": 92, "pidfd_getfd": 438,
        "pidfd_open": 434, "pidfd_send_signal": 424, "pivot_root": 41, "process_madvise": 440,
        "process_vm_readv": 270, "process_vm_writev": 271, "ptrace": 117, "quotactl": 60, "reboot": 142,
        "request_key": 218, "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240, "sched_setattr": 274, "seccomp": 277,
        "semget": 190, "setitimer": 103, "setns": 268, "settimeofday": 170, "shmget": 194, "swapon": 224,
        "syslog": 116, "tgkill": 131, "timer_create": 107, "tkill": 130, "umount2": 39, "unshare": 97,
        "userfaultfd": 282, "vfork": 220,
    },
}[platform.machine()]  # fmt: skip

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
here = os.path.dirname(__file__)  # noqa: PTH120  as skills do
own_file = here + "/own.txt"


def demand(result):
    """Raise ``OSError`` if a C function failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def reach(result):
    """Raise ``OSError`` only for EPERM and ENOSYS; other errors show that the kernel has executed the call."""
    if result < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
        demand(result)
    return result


def call(name, *arguments):
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return libc.syscall(ctypes.c_long(NUMBERS[name]), *words)


def insist(value):
    """Raise ``OSError`` if a function that does not raise returned a false value."""
    if not value:
        raise OSError("refused")
    return value


def reap(pid):
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def run_machine_code(code):
    """Execute machine code, and return the value in the result register."""
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    return ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()


def read(path):
    with open(path, "rb") as stream:  # noqa: PTH123  as skills do
        return insist(stream.read(16))


def write(path, flags=0):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o600)
    os.write(descriptor, b"hostile")
    os.close(descriptor)


def pair():
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


def copy(name, pid, address, buffer):
    """Copy between a buffer and the memory of another process."""
    size = ctypes.sizeof(buffer)
    own = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), size)
    return call(name, pid, own, 1, (ctypes.c_size_t * 2)(address, size), 1, 0)


def steal(pid, address):
    buffer = ctypes.create_string_buffer(6)
    demand(copy("process_vm_readv", pid, address, buffer))
    insist(buffer.raw == b"canary")


def forge(pid, address):
    demand(copy("process_vm_writev", pid, address, ctypes.create_string_buffer(b"canary", 6)))


def _close_all_but(kept):
    for descriptor in set(_descriptors()) - kept:
        os.close(descriptor)


def _descriptors():
    """Return the open descriptors, without using /proc."""
    found = set()
    for descriptor in range(256):
        try:
            os.fstat(descriptor)
        except OSError:
            continue
        found.add(descriptor)
    return found


async def attack(attempt, facts):
    """Make an attempt, then close the descriptors that it opened. Return the error that stopped it, or ``None``."""
    kept = _descriptors()
    stopped = None
    try:
        await attempt(SimpleNamespace(**facts))
    except BaseException as error:  # noqa: BLE001  any error is a result
        stopped = f"{' '.join(kind.__name__ for kind in type(error).__mro__[:-2])}: {error}"
    gc.collect()
    _close_all_but(kept)
    return stopped
