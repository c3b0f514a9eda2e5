"""The system calls that workers may make: those that Python needs to compute, wait, and use open descriptors.

All other calls fail with EPERM: processes, programs, sockets, signals to other processes, changes to files, user IDs,
namespaces, mounts, tracing, keyrings, io_uring, bpf. Landlock, not this filter, restricts paths.
"""

from __future__ import annotations

import errno
from functools import cache

from .._machine._seccomp import ALLOW, OWN_PID, Check, Rule, SeccompFilter, assemble, refuse
from .._machine._tables import Architecture

_ALWAYS = """
    read readv pread64 preadv write writev pwrite64 pwritev close close_range lseek
    stat lstat fstat newfstatat statx access faccessat faccessat2 readlink readlinkat
    getdents getdents64 getcwd chdir fchdir dup dup2 dup3
    poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2
    eventfd2 pipe pipe2
    shutdown getsockname getpeername
    mmap munmap mremap mprotect madvise brk membarrier
    exit exit_group futex set_robust_list rseq set_tid_address sched_yield sched_getaffinity gettid getpid getppid
    getcpu
    rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait sigaltstack pause
    restart_syscall
    clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time times getrusage getrandom uname sysinfo
    getuid geteuid getgid getegid getresuid getresgid getgroups getrlimit
"""

# VM, FS, FILES, SIGHAND, THREAD, SYSVSEM, SETTLS, PARENT_SETTID, CHILD_CLEARTID: the flags of pthread_create. Some C
# libraries add DETACHED, which the kernel ignores.
_THREAD_FLAGS = 0x3D0F00
_CLONE_DETACHED = 0x400000

_AF_UNIX = 1
_SOCK_STREAM = 1
_SOCK_FLAGS = 0o2004000  # SOCK_CLOEXEC | SOCK_NONBLOCK
_SOL_SOCKET = 1
_SO_TYPE, _SO_ERROR, _SO_SNDBUF, _SO_RCVBUF, _SO_ACCEPTCONN, _SO_PROTOCOL, _SO_DOMAIN = 3, 4, 7, 8, 30, 38, 39
_MSG_OOB = 1

_O_ACCMODE = 3
_O_RDONLY, _O_WRONLY, _O_RDWR = 0, 1, 2

_F_DUPFD, _F_GETFD, _F_SETFD, _F_GETFL, _F_SETFL, _F_DUPFD_CLOEXEC = 0, 1, 2, 3, 4, 1030
_TCGETS, _FIONREAD, _FIONBIO, _FIONCLEX, _FIOCLEX = 0x5401, 0x541B, 0x5421, 0x5450, 0x5451
_PR_SET_NAME, _PR_GET_NAME, _PR_SET_VMA = 15, 16, 0x53564D41


def _one_of(argument: int, *values: int) -> tuple[tuple[Check, ...], ...]:
    return tuple((Check(argument, value),) for value in values)


def _access_mode(argument: int) -> tuple[tuple[Check, ...], ...]:
    return tuple((Check(argument, mode, mask=_O_ACCMODE),) for mode in (_O_RDONLY, _O_WRONLY, _O_RDWR))


def _no_urgent_data(flags: int) -> tuple[tuple[Check, ...], ...]:
    return ((Check(flags, 0, mask=_MSG_OOB),),)


_CONDITIONAL: dict[str, tuple[tuple[Check, ...], ...]] = {
    "clone": ((Check(0, _THREAD_FLAGS, mask=0xFFFFFFFF ^ _CLONE_DETACHED),),),
    "fcntl": _one_of(1, _F_DUPFD, _F_GETFD, _F_SETFD, _F_GETFL, _F_SETFL, _F_DUPFD_CLOEXEC),
    "ioctl": _one_of(1, _TCGETS, _FIONREAD, _FIONBIO, _FIONCLEX, _FIOCLEX),
    # Python's raise_signal, faulthandler and abort signal only their own process.
    "kill": ((Check(0, OWN_PID),),),
    "tgkill": ((Check(0, OWN_PID),),),
    "prctl": _one_of(0, _PR_SET_NAME, _PR_GET_NAME, _PR_SET_VMA),
    # Read its own limits only. Setting limits is refused, because a process ID would select another process.
    "prlimit64": ((Check(0, 0), Check(2, 0, wide=True)),),
    # Not access mode 3, which neither reads nor writes: Landlock requires no right for it, and it opens devices.
    "open": _access_mode(1),
    "openat": _access_mode(2),
    # No urgent data: it is not needed on a local socket, and its handling in the kernel has had exploitable bugs.
    "sendto": _no_urgent_data(3),
    "recvfrom": _no_urgent_data(3),
    "sendmsg": _no_urgent_data(2),
    "recvmsg": _no_urgent_data(2),
    # Not SO_PEERPIDFD, which would return a pidfd of the host.
    "getsockopt": tuple(
        (Check(1, _SOL_SOCKET), Check(2, name))
        for name in (_SO_TYPE, _SO_ERROR, _SO_SNDBUF, _SO_RCVBUF, _SO_ACCEPTCONN, _SO_PROTOCOL, _SO_DOMAIN)
    ),
    "setsockopt": (
        (Check(1, _SOL_SOCKET), Check(2, _SO_SNDBUF)),
        (Check(1, _SOL_SOCKET), Check(2, _SO_RCVBUF)),
    ),
    # A datagram pair could send to any socket's path without ever calling socket().
    "socketpair": ((Check(0, _AF_UNIX), Check(1, _SOCK_STREAM, mask=0xFFFFFFFF ^ _SOCK_FLAGS), Check(2, 0)),),
}

# The flags of clone3 are behind a pointer, which a filter cannot follow. ENOSYS makes C libraries fall back to clone.
_ABSENT = ("clone3",)


@cache
def worker_filter(architecture: Architecture) -> SeccompFilter:
    """Return the allow list of workers, assembled for one architecture."""
    calls = architecture.calls
    rules = [Rule(calls[name]) for name in _ALWAYS.split() if name in calls]
    rules += [Rule(calls[name], ALLOW, any_of) for name, any_of in _CONDITIONAL.items() if name in calls]
    rules += [Rule(calls[name], refuse(errno.ENOSYS)) for name in _ABSENT]
    return assemble(architecture, rules, default=refuse(errno.EPERM))
