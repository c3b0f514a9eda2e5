"""Programs cannot leave set-user-ID files in a writable place, whichever call or archive they use."""

import json
import os
import stat
import subprocess
import sys
import zipfile
from io import BytesIO
from tarfile import TarFile, TarInfo

import pytest
from sideband.workers import Place
from sideband_sandbox._machine._tables import ARCHITECTURES

pytestmark = pytest.mark.anyio

PYTHON = os.path.realpath(sys.executable)

PREPARE = """
import ctypes, errno, json, os, struct, sys
numbers, attempts = json.loads(sys.argv[1]), json.loads(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
HERE = -100

def call(name, *arguments):
    if name not in numbers:
        raise OSError(errno.EPERM, "this architecture lacks the call")
    words = [each if isinstance(each, bytes) else ctypes.c_long(each) for each in arguments]
    result = libc.syscall(ctypes.c_long(numbers[name]), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def make(name):
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o755))
    return name.encode()

os.umask(0)
"""
TRY_ALL = """
def attempt(code):
    try:
        exec(code, globals())
    except OSError as error:
        return errno.errorcode[error.errno]

print(json.dumps({name: attempt(code) for name, code in attempts.items()}))
"""
HIGH = 0x7F << 32  # bits that the kernel ignores in a mode
ATTEMPTS = {
    "chmod": "call('chmod', make('chmod'), 0o6755)",
    "chmod to set the user only": "call('chmod', make('user'), 0o4755)",
    "chmod to set the group only": "call('chmod', make('group'), 0o2755)",
    "chmod with ignored bits": f"call('chmod', make('ignored'), {HIGH} | 0xF0000 | 0o4755)",
    "chmod of a folder": "os.mkdir('folder'); os.chmod('folder', 0o2755)",
    "fchmod": "call('fchmod', os.open(make('fchmod'), os.O_WRONLY), 0o4755)",
    "fchmodat": "call('fchmodat', HERE, make('fchmodat'), 0o4755)",
    "fchmodat2": "call('fchmodat2', HERE, make('fchmodat2'), 0o4755, 0)",
    "open": "call('open', b'open', os.O_CREAT | os.O_WRONLY, 0o4755)",
    "openat": "call('openat', HERE, b'openat', os.O_CREAT | os.O_WRONLY, 0o4755)",
    "openat with ignored bits": f"call('openat', HERE, b'bits', {HIGH} | os.O_CREAT | os.O_WRONLY, {HIGH} | 0o2755)",
    "open of an unnamed file": """
descriptor = call('openat', HERE, b'.', os.O_TMPFILE | os.O_RDWR, 0o4755)
call('linkat', HERE, f'/proc/self/fd/{descriptor}'.encode(), HERE, b'unnamed', 0x400)
""",
    "openat2": "call('openat2', HERE, b'openat2', struct.pack('=QQQ', os.O_CREAT | os.O_WRONLY, 0o4755, 0), 24)",
    "creat": "call('creat', b'creat', 0o4755)",
    "mknod": "call('mknod', b'mknod', 0o104755, 0)",
    "mknodat": "call('mknodat', HERE, b'mknodat', 0o104755, 0)",
    "mknodat of a pipe": "call('mknodat', HERE, b'pipe', 0o014755, 0)",
    "a thread": """
import threading
found = []
def change():
    try: os.chmod(make('thread'), 0o4755)
    except OSError as error: found.append(error)
thread = threading.Thread(target=change); thread.start(); thread.join()
if found: raise found[0]
""",
    "another program": """
import subprocess
subprocess.run(['/bin/chmod', '4755', make('program')], stderr=subprocess.PIPE).returncode
if not os.stat('program').st_mode & 0o4000: raise PermissionError(errno.EPERM, 'chmod')
""",
    "a file capability": """
value = struct.pack('<5I', 0x02000001, 0xffffffff, 0xffffffff, 0, 0)
os.setxattr(make('capable'), 'security.capability', value)
""",
}
ORDINARY = """
assert os.stat(make('script')).st_mode & 0o7777 == 0o755
os.chmod('script', 0o1700)
os.fchmod(os.open('script', os.O_RDONLY), 0o700)
os.mkdir('shared', 0o777); os.chmod('shared', 0o1777)
os.mkfifo('queue', 0o600)
os.close(os.open('script', os.O_RDONLY, 0o6755))  # without O_CREAT the mode has no meaning
if 'open' in numbers: call('open', b'script', 0, 0o6755)
"""
NAMES = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "open": (2, None),
    "openat": (257, 56), "openat2": (437, 437), "creat": (85, None), "mknod": (133, None), "mknodat": (259, 33),
    "linkat": (265, 37),
}  # fmt: skip


def numbers_of(machine):
    column = list(ARCHITECTURES).index(machine)
    return {name: both[column] for name, both in NAMES.items() if both[column] is not None}


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


@pytest.fixture
def run_in_place(run, place, python_places):
    """Return a function that runs a program that may write to the place."""

    async def run_in_place(*arguments, more=()):
        return await run(*arguments, folder=place, places=(Place(place, writable=True), *more, *python_places))

    return run_in_place


@pytest.fixture
def run_attempts(run_in_place, machine):
    """Return a function that makes attempts in one program, and returns its output."""

    async def run_attempts(code, attempts):
        numbers = json.dumps(numbers_of(machine.architecture.machine))
        command = (PYTHON, "-I", "-S", "-B", "-c", code, numbers, json.dumps(attempts))
        exit_code, output, errors = await run_in_place(*command)
        assert exit_code == 0, errors
        return output

    return run_attempts


def privileged(folder):
    """Return the files and folders with the set-user-ID or set-group-ID bit."""
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if stat.S_IMODE(path.lstat().st_mode) & 0o6000
    )


async def test_program_cannot_leave_a_set_user_id_file(run_attempts, place):
    outcomes = json.loads(await run_attempts(PREPARE + TRY_ALL, ATTEMPTS))
    assert privileged(place) == []
    refusals = {name: "ENOSYS" if name == "openat2" else "EPERM" for name in ATTEMPTS}
    assert {name: outcome for name, outcome in outcomes.items() if outcome != refusals[name]} == {}


async def test_program_can_create_files_and_set_ordinary_modes(run_attempts, place):
    await run_attempts(PREPARE + ORDINARY, {})
    assert stat.S_IMODE((place / "script").stat().st_mode) == 0o700
    assert stat.S_IMODE((place / "shared").stat().st_mode) == 0o1777


def test_attempts_succeed_without_isolation(place, machine):
    numbers = json.dumps(numbers_of(machine.architecture.machine))
    code = PREPARE + TRY_ALL
    command = [sys.executable, "-I", "-S", "-B", "-c", code, numbers, json.dumps(ATTEMPTS)]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True)
    stopped = {name for name, outcome in json.loads(done.stdout).items() if outcome is not None}
    # Calls that the architecture or an older kernel lacks; file capabilities require a privilege.
    assert stopped <= {"fchmodat2", "a file capability", *(NAMES.keys() - numbers_of(machine.architecture.machine))}
    assert {"chmod", "open", "unnamed", "mknodat"} & set(privileged(place)) >= {"unnamed", "mknodat"}


FILES = {"plain": 0o755, "folder/user": 0o104755, "folder/group": 0o102755, "both": 0o106711}


def tar_archive():
    data = BytesIO()
    with TarFile(fileobj=data, mode="w") as archive:
        for name, mode in FILES.items():
            member = TarInfo(name)
            member.mode, member.size = mode & 0o7777, 7
            member.uid, member.gid = os.geteuid(), os.getegid()
            archive.addfile(member, BytesIO(b"content"))
    return data.getvalue()


def zip_archive():
    data = BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, mode in FILES.items():
            member = zipfile.ZipInfo(name)
            member.create_system, member.external_attr = 3, (0o100000 | mode) << 16
            archive.writestr(member, b"content")
    return data.getvalue()


def cpio_archive():
    data = b""
    entries = [("folder", 0o40755, b""), *((name, 0o100000 | mode, b"content") for name, mode in FILES.items())]
    for number, (name, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        words = (number, mode, os.geteuid(), os.getegid(), 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        data += b"070701" + b"".join(b"%08X" % word for word in words) + name.encode() + b"\0"
        data += b"\0" * (-len(data) % 4) + content
        data += b"\0" * (-len(data) % 4)
    return data


ARCHIVES = {
    "tar": (tar_archive, ("/usr/bin/tar", "--no-same-owner", "-xpf")),
    "unzip": (zip_archive, ("/usr/bin/unzip", "-K", "-o")),
    "cpio": (cpio_archive, ("/usr/bin/cpio", "--extract", "--make-directories", "--file")),
}


@pytest.mark.parametrize("tool", ARCHIVES)
async def test_archive_cannot_leave_a_set_user_id_file(run_in_place, place, tmp_path, tool):
    make, command = ARCHIVES[tool]
    archive = tmp_path / "archive"
    archive.write_bytes(make())
    _, _, errors = await run_in_place(*command, str(archive), more=(Place(archive),))
    assert privileged(place) == []
    assert {name: (place / name).read_text() for name in FILES} == dict.fromkeys(FILES, "content"), errors
    assert stat.S_IMODE((place / "plain").stat().st_mode) == 0o755


@pytest.mark.parametrize("tool", ARCHIVES)
def test_archive_leaves_set_user_id_files_without_isolation(place, tmp_path, tool):
    make, command = ARCHIVES[tool]
    archive = tmp_path / "archive"
    archive.write_bytes(make())
    subprocess.run([*command, str(archive)], cwd=place, check=True, capture_output=True)
    assert privileged(place) == sorted(FILES.keys() - {"plain"})
