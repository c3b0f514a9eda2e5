"""Hostile programs, as root and as an ordinary user, on both tiers. Without isolation their attempts succeed.

They are commands of `shell`, and servers of `mcp`, which make the same attempts.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ORDINARY_USER = 61_234

# Attempts that fail in isolation, and succeed without.
STOPPED = {
    "read a file outside its places": "assert open(facts['secret']).read()",
    "read through a link in its place": "assert open('way-out').read()",
    "list a folder outside its places": "os.listdir(facts['private'])",
    "list the host's own folder": "os.listdir(facts['home'])",
    "write outside its places": "open(facts['open'] + '/written', 'w').close()",
    "write to a read-only place": "open('written', 'w').close()",
    "truncate a file in a read-only place": "os.truncate('known', 0)",
    "create a link in a read-only place": "os.symlink('/etc', 'link')",
    "leave a set-user-ID file in a writable place": """
path = facts['writable'] + '/changed'
open(path, 'w').close()
os.chmod(path, 0o6755)
""",
    "leave a set-user-ID file in an executable place": """
path = facts['built'] + '/changed'
open(path, 'w').close()
os.chmod(path, 0o6755)
""",
    "execute a file in a writable place": """
execute_copy(facts['writable'])
""",
    "create a set-group-ID file in a writable place": """
os.close(os.open(facts['writable'] + '/created', os.O_CREAT | os.O_WRONLY, 0o2755))
assert os.stat(facts['writable'] + '/created').st_mode & 0o2000
""",
    "read the environment of the host": "open(f\"/proc/{facts['host']}/environ\", 'rb').read()",
    "read the memory map of the host": "assert open(f\"/proc/{facts['host']}/maps\").read(1)",
    "connect to a service on the loopback": "connect(socket.AF_INET, ('127.0.0.1', facts['port']))",
    "connect to a service by its path": "connect(socket.AF_UNIX, facts['service'])",
    "connect to a service in its read-only place": "connect(socket.AF_UNIX, 'docker.sock')",
    "connect to a service in its writable place": "connect(socket.AF_UNIX, facts['writable'] + '/agent.sock')",
    "connect to a service in its place through a descriptor": """
descriptor = os.open('docker.sock', os.O_PATH)
connect(socket.AF_UNIX, f'/proc/self/fd/{descriptor}')
""",
    "connect to a service in its place through a link": """
path = os.environ.get('TMPDIR', facts['open']) + '/link'
os.symlink(facts['place'] + '/docker.sock', path)
connect(socket.AF_UNIX, path)
""",
    "connect to a service in its place from another program": """
import subprocess
code = 'import socket; socket.socket(socket.AF_UNIX).connect("docker.sock")'
subprocess.run([sys.executable, '-I', '-S', '-B', '-c', code], check=True)
""",
    "connect to a service by its abstract name": "connect(socket.AF_UNIX, chr(0) + facts['abstract'])",
    "send to a service with a datagram pair": """
left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
try:
    left.sendto(b'x', facts['service'])
except OSError as error:
    if error.errno != 91: raise  # EPROTOTYPE: the service was reached, but has another socket type
""",
    "send to a service in its place with a datagram pair": """
left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
try:
    left.sendto(b'x', 'docker.sock')
except OSError as error:
    if error.errno != 91: raise  # EPROTOTYPE: the service was reached, but has another socket type
""",
    "listen on the network": "socket.create_server(('127.0.0.1', 0)).close()",
    "signal the host": "os.kill(facts['host'], 0)",
    "trace the host": "demand(libc.ptrace(0x4206, facts['host'], 0, 0))",
    "take a descriptor of the host": "demand(libc.syscall(438, os.pidfd_open(facts['host']), 1, 0))",
    "create a namespace": "demand(libc.unshare(0x10000000))",
    "create a key": """
number = {'x86_64': 248, 'aarch64': 217}[os.uname().machine]
demand(libc.syscall(number, b'user', b'x', b'y', 1, -1))
""",
    "run a program that it has written": """
path = os.environ.get('TMPDIR', facts['open']) + '/program'
with open(path, 'w') as stream: stream.write('#!/bin/sh\\nexit 0\\n')
os.chmod(path, 0o700)
import subprocess
subprocess.run([path], check=True)
""",
}
# Made by another program, whose grant does not have `runs=any`.
ANOTHER_PROGRAM = "run another program without a grant for that"
# Attempts that are not made without isolation, because they would do damage or depend on the machine.
STOPPED_ALWAYS = {
    "find the host's variables in its own environment": "assert 'CANARY' in os.environ",
    "read /etc/shadow": "assert open('/etc/shadow').read()" if os.geteuid() == 0 else "os.kill(1, 9)",
    "find a descriptor of the host": """
for number in range(3, 1024):
    try: os.fstat(number)
    except OSError: continue
    raise SystemExit(0)
raise SystemExit(1)
""",
    "kill the host": """
libc.prctl(15, b'ender')
os.setpgid(0, 0) if os.getpgid(0) != os.getpid() else None
os.kill(facts['host'], signal.SIGTERM)
""",
    "gain privileges through a setuid program": """
assert demand(libc.prctl(39, 0, 0, 0, 0)) == 0, 'no_new_privs is set'
""",
    "connect a socket pair to a service in its place": "socket.socketpair()[0].connect('docker.sock')",
    "connect a sequenced pair to a service in its place": """
socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)[0].connect('docker.sock')
""",
    "listen on a socket pair": "left = socket.socketpair()[0]; left.bind(os.environ['TMPDIR'] + '/own'); left.listen()",
    "open a unix socket through the x32 interface": "demand(libc.syscall(0x40000029, 1, 1, 0))",
    "open a unix socket through the 32-bit interface": """
import mmap
assert os.uname().machine == 'x86_64', 'other machines have no such interface'
code = bytes.fromhex('53 b867010000 bb01000000 b901000000 31d2 cd80 5b c3')  # eax, ebx, ecx = 359, 1, 1; int 0x80
memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory.write(code)
function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
assert function() >= 0, 'refused'
""",
    "open a unix socket with io_uring": """
number = 425
demand(libc.syscall(number, 4, ctypes.create_string_buffer(120)))
""",
    "mount a file system": "demand(libc.mount(b'none', b'/tmp', b'tmpfs', 0, None))",
    "change the kernel's settings": "open('/proc/sys/kernel/core_pattern', 'w').close()",
    "read the disk": "os.mknod(os.environ['TMPDIR'] + '/disk', 0o60600, os.makedev(8, 0))",
}
WORKS = {
    "read its place": "assert open('known').read() == 'known'",
    "run the system's programs": """
import subprocess
subprocess.run(['/bin/sh', '-c', 'cat known | grep -q known'], check=True)
""",
    "write to a writable place": "open(facts['writable'] + '/x', 'w').write('x')",
    "execute a file that it creates in an executable place": "execute_copy(facts['built'])",
    "write to its temporary folder": "open(os.environ['TMPDIR'] + '/x', 'w').write('x')",
    "use threads and processes": """
import threading
thread = threading.Thread(target=os.getpid); thread.start(); thread.join()
pid = os.fork()
if pid == 0: os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
""",
    "use socket pairs": """
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    left, right = socket.socketpair(socket.AF_UNIX, kind)
    left.send(b'x')
    assert right.recv(1) == b'x'
socket.send_fds(left, [b'y'], [0])
assert socket.recv_fds(right, 1, 1)[1]
""",
    "reopen its output": "open('/dev/stdout', 'w').close()",
    "discard output": "open('/dev/null', 'w').write('x')",
    "get random numbers": "os.urandom(8); open('/dev/urandom', 'rb').read(1)",
}


# A server has no places in which it may execute what it wrote.
NOT_BY_SERVERS = {"execute a file that it creates in an executable place"}


def answers(kind, who, tier, attempts, place):
    home, area = place / "home", place / "area"
    identity = ["--as-user", str(ORDINARY_USER)] if who == "user" and os.geteuid() == 0 else []
    for folder in (home, area):
        folder.mkdir()
        if identity:
            os.chown(folder, ORDINARY_USER, ORDINARY_USER)
    orders = {"kind": kind, "tier": tier, "home": str(home), "area": str(area), "attempts": attempts}
    done = subprocess.run(
        [sys.executable, str(HERE / "harness_programs.py"), *identity],
        input=json.dumps(orders) + "\n",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.keys() == {*attempts, *([ANOTHER_PROGRAM] if kind == "command" else [])}
    return found


KINDS = ["command", "server"]
USERS = ["root", "user"] if os.geteuid() == 0 else ["user"]
# `make test` runs each user on each tier, with one kind of program; `make long` with the other kind too.
COMBINATIONS = pytest.mark.parametrize(
    ("kind", "who", "tier"),
    [
        pytest.param(kind, who, tier, marks=[] if (place + user + level) % 2 else [pytest.mark.long])
        for place, kind in enumerate(KINDS)
        for user, who in enumerate(USERS)
        for level, tier in enumerate(["full", "no-namespaces"])
    ],
)


@pytest.fixture(scope="module")
def outcomes(area):
    """Return ``outcomes(kind, who, tier)``: makes all attempts once, and returns the error of each, if any."""
    known = {}

    def make(*case):
        if case not in known:
            kind, _, tier = case
            attempts = {**STOPPED, **WORKS} if tier == "none" else {**STOPPED, **STOPPED_ALWAYS, **WORKS}
            if kind == "server":
                attempts = {name: code for name, code in attempts.items() if name not in NOT_BY_SERVERS}
            folder = area / f"programs-{'-'.join(case)}"
            folder.mkdir()
            folder.chmod(0o755)
            known[case] = answers(*case, attempts, folder)
        return known[case]

    return make


@COMBINATIONS
def test_attempts_fail_with_isolation(outcomes, kind, who, tier):
    found = outcomes(kind, who, tier)
    attempts = (*STOPPED, *STOPPED_ALWAYS, ANOTHER_PROGRAM)
    assert [attempt for attempt in attempts if found.get(attempt, "not made") is None] == []


@COMBINATIONS
def test_ordinary_programs_work(outcomes, kind, who, tier):
    found = outcomes(kind, who, tier)
    assert {what: error for what, error in found.items() if what in WORKS and error is not None} == {}


@pytest.mark.parametrize("kind", KINDS)
def test_attempts_succeed_without_isolation(outcomes, kind, who):
    found = outcomes(kind, who, "none")
    attempts = (*STOPPED, ANOTHER_PROGRAM)
    assert {what: error for what, error in found.items() if what in attempts and error is not None} == {}
