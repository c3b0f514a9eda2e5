"""System call numbers and flags, compared with a second source: the kernel's user-space headers.

The lists below were generated from ``asm/unistd_64.h`` of both architectures in Linux 6.12.107. One Debian package
contains the headers of all architectures. To generate the lists again:

    apt-get download linux-libc-dev && dpkg -x linux-libc-dev_*.deb headers
    grep __NR_ headers/usr/lib/linux/uapi/{x86,arm64}/asm/unistd_64.h
"""

import ctypes
import fcntl
import os
import platform
import socket
import termios
import threading

import pytest
from sideband_sandbox._inside import _lockdown
from sideband_sandbox._machine._tables import AARCH64, ARCHITECTURES, X86_64
from sideband_sandbox._workers import _filter

# Name, number on x86-64, number on aarch64; a dash if the call does not exist.
CALLS = """
    access 21/-, brk 12/214, chdir 80/49, clock_getres 229/114, clock_gettime 228/113, clock_nanosleep 230/115,
    clone 56/220, clone3 435/435, close 3/57, close_range 436/436, dup 32/23, dup2 33/-, dup3 292/24, epoll_create
    213/-, epoll_create1 291/20, epoll_ctl 233/21, epoll_pwait 281/22, epoll_pwait2 441/441, epoll_wait 232/-,
    eventfd2 290/19, exit 60/93, exit_group 231/94, faccessat 269/48, faccessat2 439/439, fchdir 81/50, fcntl 72/25,
    fstat 5/80, futex 202/98, getcpu 309/168, getcwd 79/17, getdents 78/-, getdents64 217/61, getegid 108/177,
    geteuid 107/175, getgid 104/176, getgroups 115/158, getpeername 52/205, getpid 39/172, getppid 110/173,
    getrandom 318/278, getresgid 120/150, getresuid 118/148, getrlimit 97/163, getrusage 98/165, getsockname 51/204,
    getsockopt 55/209, gettid 186/178, gettimeofday 96/169, getuid 102/174, ioctl 16/29, kill 62/129, lseek 8/62,
    lstat 6/-, madvise 28/233, membarrier 324/283, mmap 9/222, mprotect 10/226, mremap 25/216, munmap 11/215,
    nanosleep 35/101, newfstatat 262/79, open 2/-, openat 257/56, pause 34/-, pipe 22/-, pipe2 293/59, poll 7/-,
    ppoll 271/73, prctl 157/167, pread64 17/67, preadv 295/69, prlimit64 302/261, pselect6 270/72, pwrite64 18/68,
    pwritev 296/70, read 0/63, readlink 89/-, readlinkat 267/78, readv 19/65, recvfrom 45/207, recvmsg 47/212,
    restart_syscall 219/128, rseq 334/293, rt_sigaction 13/134, rt_sigpending 127/136, rt_sigprocmask 14/135,
    rt_sigreturn 15/139, rt_sigsuspend 130/133, rt_sigtimedwait 128/137, sched_getaffinity 204/123, sched_yield
    24/124, select 23/-, sendmsg 46/211, sendto 44/206, set_robust_list 273/99, set_tid_address 218/96, setsockopt
    54/208, shutdown 48/210, sigaltstack 131/132, socketpair 53/199, stat 4/-, statx 332/291, sysinfo 99/179, tgkill
    234/131, time 201/-, times 100/153, uname 63/160, write 1/64, writev 20/66
"""
OF_THE_LOCKDOWN = """
    pivot_root 155/41, open_tree 428/428, move_mount 429/429, mount_setattr 442/442, landlock_create_ruleset
    444/444, landlock_add_rule 445/445, landlock_restrict_self 446/446
"""

# linux/elf-em.h and linux/audit.h: the processor type, 64-bit, little-endian.
MACHINES = {"x86_64": 62, "aarch64": 183}
AUDIT_64_BITS, AUDIT_LITTLE_ENDIAN = 0x80000000, 0x40000000


def listed(text, position):
    """Return the numbers of one architecture, by name."""
    entries = [entry.split() for entry in text.replace("\n", " ").split(",")]
    numbers = {name: numbers.split("/")[position] for name, numbers in entries}
    return {name: int(number) for name, number in numbers.items() if number != "-"}


@pytest.fixture(params=[(X86_64, 0), (AARCH64, 1)], ids=ARCHITECTURES)
def one(request):
    return request.param


def test_numbers_match_the_kernel_headers(one):
    architecture, position = one
    assert dict(architecture.calls) == listed(CALLS, position)


def test_numbers_of_the_lock_down_match_the_kernel_headers(one):
    architecture, position = one
    assert listed(OF_THE_LOCKDOWN, position) == {
        "pivot_root": architecture.pivot_root,
        "open_tree": _lockdown._OPEN_TREE,
        "move_mount": _lockdown._MOVE_MOUNT,
        "mount_setattr": _lockdown._MOUNT_SETATTR,
        "landlock_create_ruleset": _lockdown._LANDLOCK_CREATE_RULESET,
        "landlock_add_rule": _lockdown._LANDLOCK_ADD_RULE,
        "landlock_restrict_self": _lockdown._LANDLOCK_RESTRICT_SELF,
    }


def test_audit_token_matches_the_kernel_headers(one):
    architecture, _ = one
    assert architecture.audit == MACHINES[architecture.machine] | AUDIT_64_BITS | AUDIT_LITTLE_ENDIAN


def test_only_x86_64_has_a_foreign_interface_with_its_token():
    """Only x32 shares the token of its 64-bit architecture; other 32-bit interfaces have tokens of their own."""
    assert AARCH64.foreign_from == 0
    assert X86_64.foreign_from == 0x40000000


def test_every_call_of_the_filter_has_a_number_unless_it_does_not_exist(one):
    architecture, position = one
    named = {*_filter._ALWAYS.split(), *_filter._CONDITIONAL, *_filter._ABSENT}
    assert named == set(listed(CALLS, 0))
    assert named - set(architecture.calls) == set(listed(CALLS, 0)) - set(listed(CALLS, position))


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        ("_AF_UNIX", socket.AF_UNIX),
        ("_SOCK_STREAM", socket.SOCK_STREAM),
        ("_SOCK_FLAGS", socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK),
        ("_SOL_SOCKET", socket.SOL_SOCKET),
        ("_SO_SNDBUF", socket.SO_SNDBUF),
        ("_SO_RCVBUF", socket.SO_RCVBUF),
        ("_SO_ERROR", socket.SO_ERROR),
        ("_SO_TYPE", socket.SO_TYPE),
        ("_SO_ACCEPTCONN", socket.SO_ACCEPTCONN),
        ("_SO_PROTOCOL", socket.SO_PROTOCOL),
        ("_SO_DOMAIN", socket.SO_DOMAIN),
        ("_MSG_OOB", socket.MSG_OOB),
        ("_O_ACCMODE", os.O_ACCMODE),
        ("_O_RDONLY", os.O_RDONLY),
        ("_O_WRONLY", os.O_WRONLY),
        ("_O_RDWR", os.O_RDWR),
        ("_F_DUPFD", fcntl.F_DUPFD),
        ("_F_GETFD", fcntl.F_GETFD),
        ("_F_SETFD", fcntl.F_SETFD),
        ("_F_GETFL", fcntl.F_GETFL),
        ("_F_SETFL", fcntl.F_SETFL),
        ("_F_DUPFD_CLOEXEC", fcntl.F_DUPFD_CLOEXEC),
        ("_TCGETS", termios.TCGETS),
        ("_FIONREAD", termios.FIONREAD),
        ("_FIONBIO", termios.FIONBIO),
        ("_FIONCLEX", termios.FIONCLEX),
        ("_FIOCLEX", termios.FIOCLEX),
    ],
)
def test_constants_of_the_filter_match_the_c_library(ours, expected):
    """The filter uses the same constants on all architectures; this verifies them on the current one."""
    assert getattr(_filter, ours) == expected


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("getpid", os.getpid),
        ("getppid", os.getppid),
        ("gettid", threading.get_native_id),
        ("getuid", os.getuid),
        ("geteuid", os.geteuid),
        ("getgid", os.getgid),
        ("getegid", os.getegid),
    ],
)
def test_running_kernel_uses_these_numbers(name, answer):
    libc = ctypes.CDLL(None)
    assert libc.syscall(ctypes.c_long(ARCHITECTURES[platform.machine()].calls[name])) == answer()
