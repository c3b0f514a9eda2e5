"""Numbers that differ between processor architectures: audit tokens and system calls.

Contains only the calls in the workers' allow list, by their names in the 64-bit kernel interface.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen


@frozen(eq=False)
class Architecture:
    """The constants of one processor architecture.

    Args:
        machine: the name, as returned by ``platform.machine()``.
        audit: the token that seccomp passes to a filter for native calls (``AUDIT_ARCH_*``).
        foreign_from: the lowest number of calls of another interface with the same token (x32); 0 without one.
        calls: the numbers of the system calls in the workers' allow list, by name.
        pivot_root: the number of ``pivot_root``.
    """

    machine: str
    audit: int
    foreign_from: int
    pivot_root: int
    calls: Mapping[str, int]


# fmt: off
X86_64 = Architecture(
    machine="x86_64",
    audit=0xC000003E,
    foreign_from=0x40000000,
    pivot_root=155,
    calls={
        "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7,
        "lseek": 8, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13,
        "rt_sigprocmask": 14, "rt_sigreturn": 15, "ioctl": 16, "pread64": 17, "pwrite64": 18, "readv": 19,
        "writev": 20, "access": 21, "pipe": 22, "select": 23, "sched_yield": 24, "mremap": 25, "madvise": 28,
        "dup": 32, "dup2": 33, "pause": 34, "nanosleep": 35, "getpid": 39, "sendto": 44, "recvfrom": 45,
        "sendmsg": 46, "recvmsg": 47, "shutdown": 48, "getsockname": 51, "getpeername": 52, "socketpair": 53,
        "setsockopt": 54, "getsockopt": 55, "clone": 56, "exit": 60, "kill": 62, "uname": 63, "fcntl": 72,
        "getdents": 78, "getcwd": 79, "chdir": 80, "fchdir": 81, "readlink": 89, "gettimeofday": 96,
        "getrlimit": 97, "getrusage": 98, "sysinfo": 99, "times": 100, "getuid": 102, "getgid": 104,
        "geteuid": 107, "getegid": 108, "getppid": 110, "getgroups": 115, "getresuid": 118, "getresgid": 120,
        "rt_sigpending": 127, "rt_sigtimedwait": 128, "rt_sigsuspend": 130, "sigaltstack": 131, "prctl": 157,
        "gettid": 186, "time": 201, "futex": 202, "sched_getaffinity": 204, "epoll_create": 213,
        "getdents64": 217, "set_tid_address": 218, "restart_syscall": 219, "clock_gettime": 228,
        "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231, "epoll_wait": 232, "epoll_ctl": 233,
        "tgkill": 234, "openat": 257, "newfstatat": 262, "readlinkat": 267, "faccessat": 269, "pselect6": 270,
        "ppoll": 271, "set_robust_list": 273, "epoll_pwait": 281, "eventfd2": 290, "epoll_create1": 291,
        "dup3": 292, "pipe2": 293, "preadv": 295, "pwritev": 296, "prlimit64": 302, "getcpu": 309,
        "getrandom": 318, "membarrier": 324, "statx": 332, "rseq": 334, "clone3": 435, "close_range": 436,
        "faccessat2": 439, "epoll_pwait2": 441,
    },
)

AARCH64 = Architecture(
    machine="aarch64",
    audit=0xC00000B7,
    foreign_from=0,
    pivot_root=41,
    calls={
        "getcwd": 17, "eventfd2": 19, "epoll_create1": 20, "epoll_ctl": 21, "epoll_pwait": 22, "dup": 23,
        "dup3": 24, "fcntl": 25, "ioctl": 29, "faccessat": 48, "chdir": 49, "fchdir": 50, "openat": 56,
        "close": 57, "pipe2": 59, "getdents64": 61, "lseek": 62, "read": 63, "write": 64, "readv": 65,
        "writev": 66, "pread64": 67, "pwrite64": 68, "preadv": 69, "pwritev": 70, "pselect6": 72, "ppoll": 73,
        "readlinkat": 78, "newfstatat": 79, "fstat": 80, "exit": 93, "exit_group": 94, "set_tid_address": 96,
        "futex": 98, "set_robust_list": 99, "nanosleep": 101, "clock_gettime": 113, "clock_getres": 114,
        "clock_nanosleep": 115, "sched_getaffinity": 123, "sched_yield": 124, "restart_syscall": 128,
        "kill": 129, "tgkill": 131, "sigaltstack": 132, "rt_sigsuspend": 133, "rt_sigaction": 134,
        "rt_sigprocmask": 135, "rt_sigpending": 136, "rt_sigtimedwait": 137, "rt_sigreturn": 139,
        "getresuid": 148, "getresgid": 150, "times": 153, "getgroups": 158, "uname": 160, "getrlimit": 163,
        "getrusage": 165, "prctl": 167, "getcpu": 168, "gettimeofday": 169, "getpid": 172, "getppid": 173,
        "getuid": 174, "geteuid": 175, "getgid": 176, "getegid": 177, "gettid": 178, "sysinfo": 179,
        "socketpair": 199, "getsockname": 204, "getpeername": 205, "sendto": 206, "recvfrom": 207,
        "setsockopt": 208, "getsockopt": 209, "shutdown": 210, "sendmsg": 211, "recvmsg": 212, "brk": 214,
        "munmap": 215, "mremap": 216, "clone": 220, "mmap": 222, "mprotect": 226, "madvise": 233,
        "prlimit64": 261, "getrandom": 278, "membarrier": 283, "statx": 291, "rseq": 293, "clone3": 435,
        "close_range": 436, "faccessat2": 439, "epoll_pwait2": 441,
    },
)
# fmt: on

ARCHITECTURES: Mapping[str, Architecture] = {each.machine: each for each in (X86_64, AARCH64)}
