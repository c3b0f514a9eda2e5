"""Attempts of hostile skills. Each runs in a real worker: on both tiers, as root and as an ordinary user."""

import platform
import signal

import pytest

SYSCALL = {
    "x86_64": {
        "clone": 56, "vfork": 58, "execveat": 322, "memfd_create": 319, "io_uring_setup": 425, "bpf": 321,
        "keyctl": 250, "userfaultfd": 323, "perf_event_open": 298, "pidfd_open": 434, "pidfd_send_signal":
        424, "rt_sigqueueinfo": 129, "tkill": 200, "openat2": 437, "open_by_handle_at": 304,
        "process_vm_writev": 311, "setns": 308, "mount_setattr": 442, "clone3": 435, "ptrace": 101,
        "inotify_init1": 294, "shmget": 29, "mq_open": 240, "personality": 135, "kcmp": 312, "add_key": 248,
        "swapon": 167, "reboot": 169, "init_module": 175, "pivot_root": 155, "acct": 163, "settimeofday": 164,
        "iopl": 172, "name_to_handle_at": 303, "fanotify_init": 300,
    },
    "aarch64": {
        "clone": 220, "vfork": 220, "execveat": 281, "memfd_create": 279, "io_uring_setup": 425, "bpf": 280,
        "keyctl": 219, "userfaultfd": 282, "perf_event_open": 241, "pidfd_open": 434, "pidfd_send_signal":
        424, "rt_sigqueueinfo": 138, "tkill": 130, "openat2": 437, "open_by_handle_at": 265,
        "process_vm_writev": 271, "setns": 268, "mount_setattr": 442, "clone3": 435, "ptrace": 117,
        "inotify_init1": 26, "shmget": 194, "mq_open": 180, "personality": 92, "kcmp": 272, "add_key": 217,
        "swapon": 224, "reboot": 142, "init_module": 105, "pivot_root": 41, "acct": 89, "settimeofday": 170,
        "iopl": 1000, "name_to_handle_at": 264, "fanotify_init": 262,
    },
}[platform.machine()]  # fmt: skip


def raw(name, *arguments):
    return f"demand(libc.syscall({SYSCALL[name]}, {', '.join(map(str, arguments)) or '0'}))"


FILES = {
    "read the users of the machine": "open('/etc/passwd').read()",
    "read through os.open": "os.open('/etc/hostname', os.O_RDONLY)",
    "read through ctypes": "demand(libc.open(b'/etc/passwd', 0))",
    "read a neighbor's file": "open(area + '/secret.txt').read()",
    "read a neighbor's file through ..": "open(snapshot + '/../secret.txt').read()",
    "read through a link in its own folder": "open(snapshot + '/way_out').read()",
    "read through openat": "os.open('../secret.txt', os.O_RDONLY, dir_fd=os.open(snapshot, os.O_RDONLY))",
    "read after chdir": "os.chdir('/etc'); open('passwd').read()",
    "list the root": "os.listdir('/')",
    "list /etc": "os.listdir('/etc')",
    "list the parent folder": "os.listdir(area)",
    "list with scandir": "next(os.scandir('/usr'))",
    "read the host's environment": "open(f'/proc/{host}/environ').read()",
    "read the host's memory map": "open(f'/proc/{host}/maps').read()",
    "read the host's command line": "open(f'/proc/{host}/cmdline').read()",
    "read its own memory": "open('/proc/self/mem', 'rb')",
    "reopen the protocol through /proc": """
import socket
left, right = socket.socketpair()
open(f'/proc/self/fd/{left.fileno()}', 'rb')
""",
    "read a device": "open('/dev/mem', 'rb')",
    "read a disk": "open('/dev/vda', 'rb')",
    "open a terminal": "os.openpty()",
    "write to its own folder": "open(snapshot + '/new', 'w').write('x')",
    "create an empty file": "os.close(os.open(snapshot + '/new', os.O_CREAT | os.O_WRONLY))",
    "overwrite its own file": "open(snapshot + '/own.txt', 'w').write('x')",
    "truncate its own file": "os.truncate(snapshot + '/own.txt', 0)",
    "change the mode of its own file": "os.chmod(snapshot + '/own.txt', 0o777)",
    "change the owner of its own file": "os.chown(snapshot + '/own.txt', os.getuid(), os.getgid())",
    "change the times of its own file": "os.utime(snapshot + '/own.txt')",
    "set an attribute of its own file": "os.setxattr(snapshot + '/own.txt', 'user.note', b'x')",
    "remove its own file": "os.unlink(snapshot + '/own.txt')",
    "rename its own file": "os.rename(snapshot + '/own.txt', snapshot + '/other.txt')",
    "make a folder": "os.mkdir(snapshot + '/folder')",
    "make a link": "os.symlink('/etc', snapshot + '/link')",
    "make a hard link": "os.link(snapshot + '/own.txt', snapshot + '/hard')",
    "make a pipe in a folder": "os.mkfifo(snapshot + '/pipe')",
    "make a device": "os.mknod(snapshot + '/null', 0o20666, os.makedev(1, 3))",
    "write to /tmp": "open('/tmp/sideband-hostile', 'w').write('x')",
    "write to /dev/shm": "open('/dev/shm/sideband-hostile', 'w').write('x')",
    "make a temporary file": "__import__('tempfile').TemporaryFile()",
    "make a file in memory": raw("memfd_create", "b'x'", 0),
    "open by handle": raw("open_by_handle_at", -100, "bytes(64)", 0),
    "open with openat2": raw("openat2", -100, "b'/etc/passwd'", "bytes(24)", 24),
    "watch files": raw("inotify_init1", 0),
    "change the root": "os.chroot(snapshot)",
    "mount": "demand(libc.mount(b'none', snapshot.encode(), b'tmpfs', 0, None))",
    "make mounts writable": raw("mount_setattr", -100, "b'/'", 0, "bytes(32)", 32),
    "move the root": raw("pivot_root", "b'.'", "b'.'"),
}
PROCESSES = {
    "fork": "reap(os.fork())",
    "vfork": raw("vfork", 17, 0, 0, 0, 0),
    "clone": f"reap({raw('clone', 17, 0, 0, 0, 0)})",
    "clone sharing memory, but no thread": raw("clone", 0x100, 0, 0, 0, 0),
    "clone into a namespace": raw("clone", 0x10000000 | 17, 0, 0, 0, 0),
    "clone3": raw("clone3", "bytes(88)", 88),
    "execute": "os.execv('/bin/true', ['true'])",
    "execute a missing program": """
try:
    os.execv('/none', ['none'])
except OSError as error:
    if error.errno == 1:
        raise
""",
    "execute a descriptor": raw("execveat", "os.open(snapshot, os.O_RDONLY)", "b'skill.py'", 0, 0, 0),
    "posix_spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "subprocess": "__import__('subprocess').run(['/bin/true'])",
    "a shell": "if os.system('true') != 0: raise OSError('refused')",
    "popen": "os.popen('echo x').read() and None",
    "multiprocessing": "__import__('multiprocessing').get_context('fork').Process(target=print).start()",
    "signal the host": "os.kill(host, 0)",
    "kill its parent": "os.kill(os.getppid() or -1, 0)",
    "signal a group": "os.killpg(0, 0)",
    "signal all processes": "os.kill(-1, 0)",
    "signal a thread of the host": raw("tkill", "host", 0),
    "queue a signal": raw("rt_sigqueueinfo", "host", 0, "bytes(128)"),
    "open the host as a descriptor": raw("pidfd_open", "host", 0),
    "trace the host": raw("ptrace", 0x4206, "host", 0, 0),
    "be traced": raw("ptrace", 0, 0, 0, 0),
    "read the host's memory": "demand(libc.process_vm_readv(host, bytes(16), 1, bytes(16), 1, 0))",
    "write the host's memory": raw("process_vm_writev", "host", "bytes(16)", 1, "bytes(16)", 1, 0),
    "compare with the host": raw("kcmp", "os.getpid()", "host", 0, 0, 0),
    "read the host's limits": "__import__('resource').prlimit(host, 7)",
    "lower the host's limits": "__import__('resource').prlimit(host, 7, (1, 1))",
    "raise its own limits": "__import__('resource').setrlimit(7, (4096, 4096))",
    "change the host's priority": "os.setpriority(os.PRIO_PROCESS, host, 19)",
    "move the host to a processor": "os.sched_setaffinity(host, {0})",
    "start a session": "os.setsid()",
    "leave its group": "os.setpgid(0, 0)",
    "outlive the host": "demand(libc.prctl(1, 0, 0, 0, 0))",
    "become dumpable": "demand(libc.prctl(4, 1, 0, 0, 0))",
    "install a filter of its own": "demand(libc.prctl(22, 2, bytes(16), 0, 0))",
    "become root": "os.setuid(0)",
    "change groups": "os.setgroups([0])",
    "regain capabilities": "demand(libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(1, 1)))",
    "make a user namespace": "demand(libc.unshare(0x10000000))",
    "enter a namespace": raw("setns", 0, 0),
    "change the personality": raw("personality", 0x40000),
}
NETWORK = {
    "an IPv4 socket": "import socket; socket.socket(socket.AF_INET)",
    "an IPv4 datagram socket": "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "an IPv6 socket": "import socket; socket.socket(socket.AF_INET6)",
    "a raw socket": "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "a unix socket": "import socket; socket.socket(socket.AF_UNIX)",
    "a netlink socket": "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "a packet socket": "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "a vsock": "import socket; socket.socket(40)",
    "a crypto socket": "import socket; socket.socket(38, socket.SOCK_SEQPACKET)",
    "a socket by ctypes": "demand(libc.socket(2, 1, 0))",
    "a datagram pair": "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "a sequential pair": "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)",
    "an address by name": "import socket; socket.getaddrinfo('localhost', 80)",
    "a connection": "import socket; socket.create_connection(('127.0.0.1', 9), 1)",
    "a server": "import socket; socket.create_server(('127.0.0.1', 0))",
    "listening on a pair": "import socket; socket.socketpair()[0].listen()",
    "binding a pair": "import socket; socket.socketpair()[0].bind('\\0sideband-hostile')",
    "connecting a pair": "import socket; socket.socketpair()[0].connect('\\0sideband-hostile')",
    "an asyncio connection": "import asyncio; asyncio.run(asyncio.open_connection('127.0.0.1', 9))",
}
KERNEL = {
    "io_uring": raw("io_uring_setup", 1, "bytes(120)"),
    "bpf": raw("bpf", 0, "bytes(64)", 64),
    "performance counters": raw("perf_event_open", "bytes(128)", 0, -1, -1, 0),
    "userfaultfd": raw("userfaultfd", 1),
    "keyrings": raw("keyctl", 0, -3, 0),
    "adding a key": raw("add_key", "b'user'", "b'x'", "b'y'", 1, -3),
    "shared memory": raw("shmget", 0, 4096, 0o1600),
    "message queues": raw("mq_open", "b'x'", 0o102, 0o600, 0),
    "loading a module": raw("init_module", "b''", 0, "b''"),
    "rebooting": raw("reboot", 0, 0, 0, 0),
    "swapping": raw("swapon", "b'/none'", 0),
    "accounting": raw("acct", "b'/none'"),
    "setting the clock": raw("settimeofday", 1, 0),
    "fanotify": raw("fanotify_init", 0, 0),
}
ATTEMPTS = {**FILES, **PROCESSES, **NETWORK, **KERNEL}

ONLY_IN_NAMESPACES = {
    "stat a file": "os.stat('/etc/passwd')",
    "stat a neighbor's file": "os.stat(area + '/secret.txt')",
    "see processes": "os.stat('/proc/self')",
    "see devices": "os.stat('/dev/null')",
    "see programs": "os.stat('/bin/sh')",
    "see the packages of the machine": """
import sysconfig
assert not os.path.exists(sysconfig.get_path('purelib')) or os.listdir(sysconfig.get_path('purelib'))
assert os.path.exists(sysconfig.get_path('stdlib'))
assert False, 'hidden'
""",
}


@pytest.fixture(scope="session")
def reports(bench):
    """Return a function that makes all attempts in one worker, once per user and tier."""
    made = {}

    def report(who, tier):
        if (who, tier) not in made:
            snippets = ATTEMPTS if tier == "no-namespaces" else {**ATTEMPTS, **ONLY_IN_NAMESPACES}
            outcome = bench.run(who, bench.plan(bench.variant(who, tier)), snippets)
            assert outcome.code == 0, outcome.errors
            made[who, tier] = outcome.report
        return made[who, tier]

    return report


def test_attempts_of_hostile_skills_fail(reports, who, tier):
    report = reports(who, tier)
    assert report.keys() >= ATTEMPTS.keys()
    assert [attempt for attempt, error in report.items() if error is None] == []


def test_skill_in_namespaces_does_not_see_the_machine(reports, who):
    report = reports(who, "full")
    assert [attempt for attempt in ONLY_IN_NAMESPACES if report[attempt] is None] == []


def test_filter_refuses_rare_system_calls_with_eperm(reports, who, tier):
    report = reports(who, tier)
    refused = "PermissionError: [Errno 1]"
    assert {attempt: report[attempt] for attempt in KERNEL if not report[attempt].startswith(refused)} == {}


def test_clone3_fails_with_enosys_so_that_libraries_fall_back_to_clone(reports, who, tier):
    assert "[Errno 38]" in reports(who, tier)["clone3"]


def test_attempts_leave_no_trace_in_the_snapshot(reports, bench, who, tier):
    reports(who, tier)
    assert sorted(path.name for path in bench.snapshot.iterdir()) == ["own.txt", "skill.py", "way_out"]
    assert (bench.snapshot / "own.txt").read_text() == "mine\n"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="these interfaces exist on x86-64 only")
@pytest.mark.parametrize(
    "code",
    [
        "libc.syscall(0x40000000 + 39)",  # getpid by its x32 number
        """
import mmap
page = mmap.mmap(-1, 4096, prot=7)
page.write(bytes.fromhex('b814000000cd80c3'))  # getpid by its i386 number: mov eax, 20; int 0x80; ret
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
""",
    ],
    ids=["x32", "i386"],
)
def test_foreign_system_call_interface_kills_the_worker(bench, who, tier, code):
    outcome = bench.run(who, bench.plan(bench.variant(who, tier)), {"it": code})
    # The harness encodes the signal that killed its worker in the exit code, like a shell.
    assert outcome.code == 128 + signal.SIGSYS
