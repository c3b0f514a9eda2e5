"""The system calls that programs may not make: those that change the machine, access other processes, or escape.

Programs need many more system calls than skills, and each needs different ones. So this is a deny list. It is the third
layer of defense, after namespaces, mounts and dropped capabilities, and Landlock. It has its own table of numbers,
because the workers' table contains only the calls that workers may make.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from functools import cache

from .._machine._seccomp import ALLOW, NOTIFY, Check, Rule, SeccompFilter, assemble, refuse
from .._machine._tables import Architecture

# Name, number on x86-64, number on aarch64; a dash if the call does not exist.
_TABLE = """
    mount 165 40            umount2 166 39          pivot_root 155 41       chroot 161 51
    open_tree 428 428       move_mount 429 429      mount_setattr 442 442   fsopen 430 430
    fsconfig 431 431        fsmount 432 432         fspick 433 433          open_tree_attr 467 467
    unshare 272 97          setns 308 268           clone 56 220            clone3 435 435
    ptrace 101 117          process_vm_readv 310 270 process_vm_writev 311 271 process_madvise 440 440
    process_mrelease 448 448 kcmp 312 272           pidfd_getfd 438 438     perf_event_open 298 241
    bpf 321 280             userfaultfd 323 282     io_uring_setup 425 425  io_uring_enter 426 426
    io_uring_register 427 427 keyctl 250 219        add_key 248 217         request_key 249 218
    kexec_load 246 104      kexec_file_load 320 294 init_module 175 105     finit_module 313 273
    delete_module 176 106   create_module 174 -     query_module 178 -      get_kernel_syms 177 -
    reboot 169 142          swapon 167 224          swapoff 168 225         acct 163 89
    quotactl 179 60         quotactl_fd 443 443     settimeofday 164 170    clock_settime 227 112
    clock_adjtime 305 266   adjtimex 159 171        sethostname 170 161     setdomainname 171 162
    syslog 103 116          lookup_dcookie 212 18   nfsservctl 180 42       vhangup 153 58
    iopl 172 -              ioperm 173 -            modify_ldt 154 -        uselib 134 -
    ustat 136 -             sysfs 139 -             _sysctl 156 -           afs_syscall 183 -
    vserver 236 -           security 185 -          tuxcall 184 -           fanotify_init 300 262
    open_by_handle_at 304 265 move_pages 279 239    migrate_pages 256 238   personality 135 92
    socket 41 198           socketpair 53 199       ioctl 16 29             prctl 157 167
    chmod 90 -              fchmod 91 52            fchmodat 268 53         fchmodat2 452 452
    open 2 -                openat 257 56           openat2 437 437         creat 85 -
    mknod 133 -             mknodat 259 33          execve 59 221           execveat 322 281
    seccomp 317 277         shmget 29 194           shmat 30 196            shmctl 31 195
    semget 64 190           semop 65 193            semtimedop 220 192      semctl 66 191
    msgget 68 186           msgsnd 69 189           msgrcv 70 188           msgctl 71 187
    mq_open 240 180         mq_unlink 241 181
"""
_COLUMN = {"x86_64": 0, "aarch64": 1}

# New namespaces: mount, cgroup, uts, ipc, user, pid, network. (In clone, the bit for time is part of a signal number.)
_CLONE_NEW = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_SOCK_STREAM, _SOCK_SEQPACKET = 1, 5
_SOCK_KIND = 0xF
# Injecting terminal input, using the console's selection, changing the line discipline, redirecting the console.
_TIOCSTI, _TIOCLINUX, _TIOCSETD, _TIOCCONS = 0x5412, 0x541C, 0x5423, 0x541D
_PR_SET_PDEATHSIG = 1
# Linux and Linux32, each with and without UNAME26 or ADDR_NO_RANDOMIZE, and the query.
_PERSONALITIES = (0x0, 0x0008, 0x20000, 0x20008, 0x40000, 0xFFFFFFFF)
# The argument with the mode of a file.
_MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
# The arguments with the flags and the mode. Without one of the flags below, the kernel ignores the mode.
_OPENS = {"open": (1, 2), "openat": (2, 3)}
_O_CREAT, _O_TMPFILE = 0o100, 0o20000000
_SET_USER_ID, _SET_GROUP_ID = 0o4000, 0o2000
_CONDITIONAL = frozenset({
    "clone", "clone3", "execve", "execveat", "ioctl", "openat2", "personality", "prctl", "seccomp", "socket",
    "socketpair", *_MODES, *_OPENS,
})  # fmt: skip
# Shared memory, semaphores and message queues with a number or name in the ipc namespace.
_IPC = frozenset({
    "shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl",
    "mq_open", "mq_unlink",
})  # fmt: skip
_NEW_LISTENER = 8


def _numbers(column: int) -> dict[str, int]:
    words = _TABLE.split()
    rows = zip(words[::3], words[1 + column :: 3], strict=True)
    return {name: int(number) for name, number in rows if number != "-"}


NUMBERS = {machine: _numbers(column) for machine, column in _COLUMN.items()}


@cache
def program_filter(architecture: Architecture, *, network: bool, own_sockets: bool, own_ipc: bool) -> SeccompFilter:
    """Return the filter for programs with these rights.

    Args:
        architecture: the architecture of the filter.
        network: whether the program may create IPv4 and IPv6 sockets.
        own_sockets: whether the program may create unix sockets, as the plan decides. With one it can
            connect to any service that listens at a path or an abstract name within its reach.
        own_ipc: whether the program has an ipc namespace of its own. Otherwise it gets no shared memory, semaphores and
            queues of that namespace, because those of the machine have guessable numbers.
    """
    numbers = NUMBERS[architecture.machine]
    allowed = _CONDITIONAL | _IPC if own_ipc else _CONDITIONAL
    refused = [Rule(number, refuse(errno.EPERM)) for name, number in numbers.items() if name not in allowed]
    conditional = _conditional_rules(numbers, network=network, own_sockets=own_sockets)
    return assemble(architecture, [*refused, *conditional], default=ALLOW)


@cache
def execution_filter(architecture: Architecture) -> SeccompFilter:
    """Return the filter that suspends each call that executes a file."""
    numbers = NUMBERS[architecture.machine]
    return assemble(architecture, [Rule(numbers[name], NOTIFY) for name in ("execve", "execveat")], default=ALLOW)


def _conditional_rules(numbers: dict[str, int], *, network: bool, own_sockets: bool) -> Iterator[Rule]:
    forbidden = refuse(errno.EPERM)
    families = [_AF_UNIX] * own_sockets + [_AF_INET, _AF_INET6] * network
    yield Rule(numbers["clone"], forbidden, tuple((Check(0, flag, mask=flag),) for flag in _CLONE_NEW))
    # Its flags are behind a pointer, which a filter cannot follow. ENOSYS makes C libraries fall back to clone.
    yield Rule(numbers["clone3"], refuse(errno.ENOSYS))
    yield Rule(numbers["ioctl"], forbidden, _one_of(1, _TIOCSTI, _TIOCLINUX, _TIOCSETD, _TIOCCONS))
    yield Rule(numbers["prctl"], forbidden, _one_of(0, _PR_SET_PDEATHSIG))
    yield Rule(numbers["personality"], ALLOW, _one_of(0, *_PERSONALITIES), otherwise=forbidden)
    if families:
        yield Rule(numbers["socket"], ALLOW, _one_of(0, *families), otherwise=refuse(errno.EAFNOSUPPORT))
    else:
        yield Rule(numbers["socket"], refuse(errno.EAFNOSUPPORT))
    # The ends of a stream pair are connected permanently; a datagram socket could send to any socket's path.
    kinds = tuple((Check(0, _AF_UNIX), Check(1, kind, mask=_SOCK_KIND)) for kind in (_SOCK_STREAM, _SOCK_SEQPACKET))
    alternatives = ((Check(0, _AF_UNIX),),) if own_sockets else kinds
    yield Rule(numbers["socketpair"], ALLOW, alternatives, otherwise=forbidden)
    # The listener of a newer filter would decide instead of the one that restricts execution.
    yield Rule(numbers["seccomp"], forbidden, ((_has(1, _NEW_LISTENER),),))
    yield from _mode_rules(numbers)


def _mode_rules(numbers: dict[str, int]) -> Iterator[Rule]:
    """Refuse the set-user-ID and set-group-ID bits: outside the isolation, such a file runs as the host's user."""
    forbidden = refuse(errno.EPERM)
    bits = (_SET_USER_ID, _SET_GROUP_ID)
    for name, mode in _MODES.items():
        if name in numbers:
            yield Rule(numbers[name], forbidden, tuple((_has(mode, bit),) for bit in bits))
    for name, (flags, mode) in _OPENS.items():
        if name in numbers:
            alternatives = tuple(
                (_has(flags, flag), _has(mode, bit)) for flag in (_O_CREAT, _O_TMPFILE) for bit in bits
            )
            yield Rule(numbers[name], forbidden, alternatives)
    # Its mode is behind a pointer, as the flags of clone3 are. ENOSYS makes programs fall back to openat.
    yield Rule(numbers["openat2"], refuse(errno.ENOSYS))


def _has(argument: int, bit: int) -> Check:
    return Check(argument, bit, mask=bit)


def _one_of(argument: int, *values: int) -> tuple[tuple[Check, ...], ...]:
    return tuple((Check(argument, value),) for value in values)
