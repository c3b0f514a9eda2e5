"""Known traps of the isolation, each with the tests that cover it.

==  ==================================================  ===============================================================
1   Landlock applies to one thread                      sandbox ``test_guards``: lockdown refuses a running thread
2   Landlock ignores modes, owners, times, attributes,  ``impossible/writing``, ``sockets``, ``processes``; sandbox
    stat, unix sockets, UDP and fork                    ``test_guards``: filter alone stops attempts
3   Capabilities of root open /proc despite Landlock    ``impossible/reading`` and ``memory``, as root; sandbox
                                                        ``test_guards``: root loses every capability
4   Pipes can be reopened through /proc                 ``test_impossible``: worker inherits no … file of the host
5   A datagram pair sends to any unix socket            ``impossible/sockets``; sandbox ``test_seccomp``
6   clone3 hides its flags; foreign call interfaces     ``impossible/processes``: clone3, i386, x32
7   A change of the user ID clears PDEATHSIG            sandbox ``test_guards``: spinning worker is killed with its
                                                        host; ``crashes/test_orphans``
8   The process limit does not apply to root            sandbox ``test_guards``: thread limit alone stops threads
9   Shared memory is not counted by RLIMIT_DATA         sandbox ``test_guards``: memory limit includes shared memory
10  A user ID of its own cannot enter a closed home     here: skill below a closed folder
11  .pth files and sitecustomize run at startup         here: code of the skill does not run before the lockdown
12  Refusals that look like other errors                here: refusals are immediate errors
13  A SQLite function that cannot be interrupted        sql ``test_hostile``: one function cannot keep a thread busy
14  A shared worker remains damaged                     here: damage is limited to the skill
==  ==================================================  ===============================================================

One more: descriptors can be sent over the protocol's socket.
"""

import os
from pathlib import Path

import pytest
from sideband import CallRequest
from sideband.workers import (
    LaunchRequest,
    SkillFailed,
    WorkerCall,
    WorkerPool,
    runtime_files,
)
from sideband_sandbox import SystemSandbox

pytestmark = pytest.mark.anyio


async def run(host, tool, **arguments):
    return await host.run(CallRequest(tool, arguments, grants=()))


WHO_AM_I = """
import os
from sideband.skill import tool

@tool
async def who() -> int:
    return os.getuid()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a worker a user of its own")
async def test_worker_with_its_own_user_finds_its_skill_below_a_closed_folder(make_host, make_skill, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    async with make_host("full", make_skill("who", WHO_AM_I), home=closed / "home") as host:
        assert (await run(host, "who.who")).output >= 0x70000000


STARTED = "import os, sys; os.environ['STARTED'] = sys.argv[0] or 'yes'\n"
LOOK_FOR_IT = """
import os, sys

async def look():
    return ["STARTED" in os.environ, "sitecustomize" in sys.modules, "usercustomize" in sys.modules]

async def start():
    import sitecustomize
    return await look()
"""


async def test_code_of_the_skill_does_not_run_before_the_lock_down(area, tmp_path):
    place = area / tmp_path.name
    sdk, snapshot, packages = place / "sdk", place / "skill", place / "packages"
    for name, source in runtime_files().items():
        (sdk / name).parent.mkdir(parents=True, exist_ok=True)
        (sdk / name).write_bytes(source.read_bytes())
    for folder in (snapshot, packages):
        folder.mkdir()
        (folder / "usercustomize.py").write_text(STARTED)
        (folder / "evil.pth").write_text(STARTED)
        (folder / "sitecustomize.py").write_text(STARTED)
    (snapshot / "tools.py").write_text(LOOK_FOR_IT)

    def call(function):
        return WorkerCall(
            id=f"call-{function}",
            tool=f"skill.{function}",
            domain="one",
            launch=LaunchRequest(snapshot=snapshot, sdk=sdk, packages=packages),
            module=str(snapshot / "tools.py"),
            function=function,
            arguments={},
            timeout=20,
        )

    async with WorkerPool(sandbox := SystemSandbox()) as pool:
        await sandbox.probe([sdk.parent, snapshot.parent, packages.parent])
        assert (await pool.call(call("look"))).value == [False, False, False]
        assert (await pool.call(call("start"))).value == [True, True, False]
    await sandbox.close()


REFUSALS = """
import errno, os, socket, tempfile, time
from sideband.skill import tool

def outcome(attempt):
    try:
        return attempt()
    except OSError as error:
        return type(error).__name__

@tool
async def ask() -> list:
    started = time.monotonic()
    answers = [
        outcome(lambda: os.system("true") != 0),
        outcome(tempfile.mkdtemp),
        outcome(lambda: socket.getaddrinfo("sideband.invalid", 80)),
    ]
    print("a line")
    return [answers, time.monotonic() - started]
"""


async def test_refused_system_calls_fail_immediately(make_host, make_skill, tier):
    async with make_host(tier, make_skill("refused", REFUSALS)) as host:
        result = await run(host, "refused.ask")
    answers, seconds = result.output
    assert answers == [True, "FileNotFoundError", "gaierror"]
    assert seconds < 5
    assert [line.text for line in result.logs] == ["a line"]


LOOK = """
import asyncio, json, os, socket, sys
from sideband.skill import tool

kept = []

@tool
async def look() -> int:
    with open(__file__) as own:
        own.read()
    await asyncio.to_thread(os.getpid)
    json.loads("[1]")
    return len(kept)

@tool
async def poison() -> str:
    json.loads = socket.socketpair = None
    for name in [name for name in sys.modules if name.startswith("email")]:
        del sys.modules[name]
    try:
        while True:
            kept.extend(os.pipe())
    except OSError as error:
        return error.strerror
"""


async def test_damage_is_limited_to_the_skill(make_host, make_skill, tier):
    async with make_host(tier, make_skill("hostile", LOOK), make_skill("quiet", LOOK + "\n")) as host:
        assert (await run(host, "quiet.look")).output == 0
        assert (await run(host, "hostile.poison")).output == "Too many open files"
        with pytest.raises(SkillFailed):
            await run(host, "hostile.look")
        assert (await run(host, "quiet.look")).output == 0
    other = make_skill("later", LOOK + "\n\n")
    async with make_host(tier, other) as host:
        assert (await run(host, "later.look")).output == 0


SEND = """
import json, os, socket
from sideband.skill import tool

@tool
async def send() -> int:
    channel = socket.socket(fileno=os.dup(3))
    line = json.dumps({"__type__": "log", "stream": "stdout", "text": "with descriptors"}).encode() + b"\\n"
    with open(__file__) as own:
        return sum(socket.send_fds(channel, [line], [own.fileno()] * 5) == len(line) for _ in range(10))
"""


def open_descriptors():
    return {path.name for path in Path("/proc/self/fd").iterdir()}


async def test_sent_descriptors_are_not_received(make_host, make_skill, tier):
    async with make_host(tier, make_skill("sender", SEND), make_skill("who", WHO_AM_I)) as host:
        await run(host, "who.who")
        await run(host, "sender.send")
        before = open_descriptors()
        assert (await run(host, "sender.send")).output == 10
        assert open_descriptors() == before
