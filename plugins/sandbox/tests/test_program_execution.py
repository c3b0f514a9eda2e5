"""Programs that may execute no file besides their own."""

import json
import shutil

import pytest
from sideband.workers import Place, WorkerStartFailed

pytestmark = pytest.mark.anyio

PREPARE = """
import ctypes, errno, fcntl, json, os, struct, subprocess, sys
both = {"execve": (59, 221), "execveat": (322, 281), "seccomp": (317, 277)}
numbers = {name: pair[os.uname().machine == "aarch64"] for name, pair in both.items()}
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

def call(name, *arguments):
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = libc.syscall(ctypes.c_long(numbers[name]), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def in_child(act):
    pid = os.fork()
    if pid == 0:
        try: act()
        except OSError as error: os._exit(error.errno)
        os._exit(255)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code: raise OSError(code, os.strerror(code))

arguments = (ctypes.c_char_p * 2)(b"true", None)
"""
TRY_ALL = """
def attempt(code):
    try: exec(code, globals())
    except OSError as error: return errno.errorcode.get(error.errno, str(error))

print(json.dumps({name: attempt(code) for name, code in json.loads(sys.argv[1]).items()}))
"""
ATTEMPTS = {
    "execute a program": "in_child(lambda: os.execv('/bin/true', ['true']))",
    "start a program": "subprocess.run(['/bin/true'], check=True)",
    "spawn a program": "os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)",
    "run a shell": "subprocess.run('exit 0', shell=True, check=True)",
    "execute a descriptor": "in_child(lambda: os.execve(os.open('/bin/true', os.O_RDONLY), ['true'], {}))",
    "execute with execveat": "in_child(lambda: call('execveat', -100, b'/bin/true', arguments, 0, 0))",
    "execute an empty path": """
file = os.open('/bin/true', os.O_PATH)
in_child(lambda: call('execveat', file, b'', arguments, 0, 0x1000))
""",
    "execute its own file": "in_child(lambda: os.execv(sys.executable, [sys.executable, '-I', '-S', '-c', '']))",
    "execute through the loader": """
loader = {'x86_64': '/lib64/ld-linux-x86-64.so.2', 'aarch64': '/lib/ld-linux-aarch64.so.1'}[os.uname().machine]
in_child(lambda: os.execv(loader, ['ld', '/bin/true']))
""",
    "let a listener of its own decide": """
execve = numbers["execve"]
code = struct.pack("=" + "HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, execve, 6, 0, 0, 0x7FC00000, 6, 0, 0, 0x7FFF0000)
memory = ctypes.create_string_buffer(code, len(code))
listener = call("seccomp", 1, 8, struct.pack("@HP", 4, ctypes.addressof(memory)))
pid = os.fork()
if pid == 0:
    try: os.execv('/bin/true', ['true'])
    except OSError as error: os._exit(error.errno)
notification = bytearray(80)
fcntl.ioctl(listener, 0xC0502100, notification)
fcntl.ioctl(listener, 0xC0182101, struct.pack("=QqiI", struct.unpack_from("=Q", notification)[0], 0, 0, 1))
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
if code: raise OSError(code, os.strerror(code))
""",
}


async def test_program_can_execute_no_other_file(run_python):
    _, output, errors = await run_python(PREPARE + TRY_ALL, json.dumps(ATTEMPTS), runs_others=False)
    outcomes = json.loads(output or "{}")
    assert outcomes == {**dict.fromkeys(ATTEMPTS, "ENOSYS"), "let a listener of its own decide": "EPERM"}, errors


async def test_program_that_runs_others_can_execute_them(run_python):
    _, output, errors = await run_python(PREPARE + TRY_ALL, json.dumps(ATTEMPTS))
    stopped = {name for name, outcome in json.loads(output).items() if outcome is not None}
    assert stopped == {"let a listener of its own decide"}, errors


async def test_program_that_runs_no_others_works_and_may_fork(run, run_python):
    assert await run("/bin/cat", data=b"x", runs_others=False) == (0, "x", "")
    code = "import os, sys; pid = os.fork(); sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if pid else 5)"
    assert (await run_python(code, runs_others=False))[0] == 5


async def test_script_without_other_programs_runs_with_its_interpreter(run, area, tmp_path):
    script = area / f"{tmp_path.name}.sh"
    script.write_text("#!/bin/sh\necho started\n/bin/true || echo refused\n")
    script.chmod(0o755)
    assert (await run(str(script), runs_others=False))[1] == "started\nrefused\n"
    assert (await run(str(script)))[1] == "started\n"


@pytest.mark.parametrize("content", [b"", b"\x7fELF but invalid", None])
async def test_file_that_cannot_be_executed_is_rejected(launcher, run, area, tmp_path, content):
    program = area / f"{tmp_path.name}-broken"
    if content is not None:
        program.write_bytes(content)
        program.chmod(0o755)
    with pytest.raises(WorkerStartFailed):
        await run(str(program), places=(Place(area),), runs_others=False)


async def test_copy_of_a_shell_under_another_name_runs_no_programs(run, area, tmp_path):
    program = area / f"{tmp_path.name}-harmless"
    shutil.copy("/bin/sh", program)
    code = "echo started; /bin/true || echo refused; exec /bin/true"
    assert (await run(str(program), "-c", code, runs_others=False))[1] == "started\nrefused\n"
