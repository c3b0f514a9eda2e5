"""The traps that were met when the isolation was designed, each with the tests that keep it closed.

==  ==================================================  ===============================================================
1   Landlock is a thread's own                          sandbox ``test_guards``: a thread that runs before the lock-down
2   Landlock leaves modes, owners, times, attributes,   ``impossible/writing``, ``sockets``, ``processes``; sandbox
    stat, local sockets, UDP and fork to others         ``test_guards``: the filter alone stops it
3   Root's capabilities open /proc despite Landlock     ``impossible/reading`` and ``memory``, as root; sandbox
                                                        ``test_guards``: root loses every capability
4   Pipes can be opened anew through /proc              ``test_impossible``: a worker is given … no file of the host
5   A datagram pair sends to any local socket           ``impossible/sockets``; sandbox ``test_seccomp``
6   clone3 hides its flags; other binary interfaces     ``impossible/processes``: clone3, i386, x32
7   A change of identity clears the death signal        sandbox ``test_guards``: a spinning worker dies with its host;
                                                        ``crashes/test_orphans``
8   The limit of threads spares root                    sandbox ``test_guards``: threads are limited, as root too
9   Shared memory gets past the limit of data           sandbox ``test_guards``: memory is limited, shared memory too
10  An own user can't pass a closed home                here: below a closed folder
11  .pth files and sitecustomize run at the start       here: nothing of the skill's runs before the lock-down
12  Refusals that look like something else              here: what is refused says so at once
13  One function of SQLite can't be interrupted         sql ``test_hostile``: one function cannot keep a thread busy
14  A shared worker stays poisoned                      here: poison stays with the skill that made it
==  ==================================================  ===============================================================

And one more: descriptors can be sent over the protocol's socket.
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
async def test_a_worker_with_a_user_of_its_own_finds_its_skill_below_a_closed_folder(make_host, make_skill, tmp_path):
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


async def test_nothing_of_the_skills_or_its_packages_runs_before_the_lock_down(area, tmp_path):
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

def said(attempt):
    try:
        return attempt()
    except OSError as error:
        return type(error).__name__

@tool
async def ask() -> list:
    started = time.monotonic()
    answers = [
        said(lambda: os.system("true") != 0),
        said(tempfile.mkdtemp),
        said(lambda: socket.getaddrinfo("sideband.invalid", 80)),
    ]
    print("this arrives, whatever the limit of files is")
    return [answers, time.monotonic() - started]
"""


async def test_what_is_refused_says_so_at_once_and_printing_goes_on(make_host, make_skill, tier):
    async with make_host(tier, make_skill("refused", REFUSALS)) as host:
        result = await run(host, "refused.ask")
    answers, seconds = result.output
    assert answers == [True, "FileNotFoundError", "gaierror"]
    assert seconds < 5
    assert [line.text for line in result.logs] == ["this arrives, whatever the limit of files is"]


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


async def test_poison_stays_with_the_skill_that_made_it(make_host, make_skill, tier):
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


async def test_descriptors_that_a_skill_sends_along_never_arrive(make_host, make_skill, tier):
    async with make_host(tier, make_skill("sender", SEND), make_skill("who", WHO_AM_I)) as host:
        await run(host, "who.who")
        await run(host, "sender.send")
        before = open_descriptors()
        assert (await run(host, "sender.send")).output == 10
        assert open_descriptors() == before
