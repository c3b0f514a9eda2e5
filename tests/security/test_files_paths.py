"""Paths that mean to lead elsewhere, in every field of every op on files, with a grant as wide as can be."""

import os
import subprocess
import sys

import pytest
import sideband_blobs.plugin
import sideband_files.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband.ops import OpError
from sideband_confined_files import FileError, FileMissing

pytestmark = pytest.mark.anyio

SECRET = "what nobody may see"

TRICKS = {
    "up": "../outside/secret",
    "up later": "a/../../outside/secret",
    "up, encoded": "..%2foutside%2fsecret",
    "up, backslashes": "..\\outside\\secret",
    "up, wide dots": "\uff0e\uff0e/outside/secret",
    "up, spaces": ".. /outside/secret",
    "the folder above": "..",
    "a link to a file": "link",
    "a link to a folder": "way/secret",
    "a link to what is not there": "dangling",
    "a loop": "loop/x",
    "home": "~/secret",
    "another home": "~root/secret",
    "nul": "a\0/../../outside/secret",
    "newline": "a\nb",
    "escape": "\x1b]0;x\x07",
    "right to left": "a\u202etxt",
    "half a character": "\ud800",
    "a letter in two parts": "e\u0301",
    "a drive": "C:\\outside\\secret",
    "a stream": "x:$DATA",
    "a pipe": "pipe",
    "a socket": "socket",
    "the hosts state": "{home}/ledger",
    "the hosts state, by its files": "{home}/files/../sideband.toml",
    "the hosts files by another name": "{home}/files/x",
    "a hidden file": ".git/config",
    "long": "a" * 300,
    "very long": "a" * 5_000,
    "deep": "/".join(["a"] * 2_000),
    "many ups": "../" * 1_300 + "outside/secret",
    "a file as a folder": "x/y",
}

# Places of the system. What they are asked for only reads: whoever tests is root perhaps, and there is one `/dev` only.
SYSTEM = {
    "a device": "/dev/zero",
    "a device without end": "/dev/urandom",
    "a terminal": "/dev/tty",
    "a share": "//server/share/secret",
    "the kernel": f"/proc/{os.getpid()}/environ",
    "the kernel, by itself": "/proc/self/environ",
    "the kernel, memory": f"/proc/{os.getpid()}/mem",
    "the kernel, by descriptors": "/proc/self/fd/0",
    "the kernel, by its root": "/proc/self/root/proc/version",
    "the kernel, drivers": "/sys/kernel/notes",
    "deep": "/" + "/".join(["a"] * 2_000),
}

# Where a path stands in each op, and what else it needs.
FIELDS = {
    "read": ({"path": None}, {"path": None, "kind": "blob"}),
    "write": ({"path": None, "content": "gone", "overwrite": True}, {"path": None, "content": "gone", "append": True}),
    "list": ({"path": None},),
    "find": ({"path": None, "pattern": "**"},),
    "stat": ({"path": None, "digest": True},),
    "copy": ({"path": None, "target": "new"}, {"path": "x", "target": None, "overwrite": True}),
    "move": ({"path": None, "target": "new"}, {"path": "x", "target": None, "overwrite": True}),
    "delete": ({"path": None},),
    "make_folder": ({"path": None},),
    "restore": ({"path": None, "expected": "0" * 64},),
}
# What a path may mean that does no harm: it names a file below the host's folder, of whatever strange name.
HARMLESS = {"up, encoded", "up, wide dots"}


@pytest.fixture
async def arena(tmp_path):
    home, outside = tmp_path / "home", tmp_path / "outside"
    root = home / "files"
    root.mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_text(SECRET)
    (home / "sideband.toml").write_text("")
    (root / "x").write_text("x")
    (root / "link").symlink_to(outside / "secret")
    (root / "way").symlink_to(outside)
    (root / "dangling").symlink_to(outside / "new")
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "pipe")
    os.mknod(root / "socket", 0o140600)
    plugins = [
        Plugin("op", "files", sideband_files.plugin),
        Plugin("op", "blobs", sideband_blobs.plugin),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
    ]
    async with Host(home=home, plugins=plugins, autoload=False) as host:
        yield host


def state_of(folder):
    return {path: path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def refusal(arena):
    """The code of the error that an op ends with; `None` if it does not, with what it answered."""

    async def run(name, params, grants):
        try:
            answer = await arena.op(f"files.{name}", params, grants=grants)
        except OpError as error:
            return error.code, None
        return None, answer

    return run


REFUSED = {"file.refused", "file.missing", "op.params", "op.denied", "file.taken"}


@pytest.mark.parametrize("trick", TRICKS)
async def test_no_path_leads_elsewhere_in_any_field(arena, tmp_path, trick, refusal):
    path = TRICKS[trick].format(home=arena.home)
    before = state_of(tmp_path / "outside")
    # with a place in the system that is not the host's, so that what means the host's state is not just denied
    grants = ["files:mode=read|write", f"files:path={tmp_path.resolve()}/*,hidden=*,mode=*", "blobs"]
    for name, forms in FIELDS.items():
        for form in forms:
            params = {key: path if value is None else value for key, value in form.items()}
            code, answer = await refusal(name, params, grants)
            assert code in REFUSED or trick in HARMLESS or (name == "stat" and not params["digest"]), (params, answer)
            assert SECRET not in repr(answer)
    assert state_of(tmp_path / "outside") == before
    assert arena.home.joinpath("sideband.toml").read_text() == ""


@pytest.mark.parametrize("place", SYSTEM)
@pytest.mark.parametrize("name", ["read", "list", "find", "stat"])
async def test_nothing_of_the_system_that_is_no_file_is_read(place, name, refusal):
    for form in FIELDS[name]:
        params = {key: SYSTEM[place] if value is None else value for key, value in form.items()}
        code, answer = await refusal(name, params, ["files:place=*,hidden=*", "blobs"])
        assert code in ("file.refused", "file.missing", "file.failed"), answer


async def test_a_status_of_a_link_tells_about_the_link_and_a_digest_of_it_is_refused(arena):
    assert (await arena.op("files.stat", {"path": "link"}))["kind"] == "link"
    with pytest.raises(FileError):
        await arena.op("files.stat", {"path": "link", "digest": True})


SWAPPER = """
import os, sys
name, real, link = sys.argv[1:]
print("begun", flush=True)
while True:
    for one in (real, link):
        os.rename(one, name)
        os.rename(name, one)
"""


@pytest.fixture
def swapped(arena):
    """A name that is a folder, a link to elsewhere and nothing in turn, as fast as a process can do it."""
    root = arena.home / "files"
    (root / "real").mkdir()
    words = [sys.executable, "-c", SWAPPER, root / "swapped", root / "real", root / "way"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield "swapped"
        process.kill()


async def test_a_folder_that_is_swapped_for_a_link_while_ops_run_leads_nowhere(swapped, tmp_path, refusal):
    for number in range(80):
        for name, params in (
            ("write", {"path": f"{swapped}/{number}", "content": "mine"}),
            ("read", {"path": f"{swapped}/secret"}),
            ("delete", {"path": f"{swapped}/secret"}),
            ("move", {"path": f"{swapped}/secret", "target": f"{number}"}),
            ("copy", {"path": f"{swapped}/secret", "target": f"{number}"}),
        ):
            code, answer = await refusal(name, params, ["files:mode=read|write"])
            assert code in ("file.refused", "file.missing", "file.taken") or name == "write", answer
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["secret"]
    assert (tmp_path / "outside/secret").read_text() == SECRET


@pytest.fixture
def granted(tmp_path):
    """A place that is granted, in which a link leads elsewhere and within in turn."""
    folder = (tmp_path / "granted").resolve()
    (folder / "own").mkdir(parents=True)
    (folder / "own/secret").write_text("mine")
    (folder / "within").symlink_to(folder / "own")
    (folder / "out").symlink_to(tmp_path / "outside")
    words = [sys.executable, "-c", SWAPPER, folder / "way", folder / "within", folder / "out"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield folder
        process.kill()


async def test_a_link_that_is_turned_after_the_grant_was_compared_lends_no_rights(arena, granted, refusal):
    for _ in range(300):
        code, answer = await refusal("read", {"path": f"{granted}/way/secret"}, [f"files:path={granted}/*"])
        assert code in (None, "op.denied", "file.missing", "file.refused")
        assert answer is None or answer["content"] == "mine"


async def test_a_grant_for_one_folder_reaches_no_other_by_any_spelling(arena, tmp_path):
    (tmp_path / "granted").mkdir()
    (tmp_path / "granted-not").mkdir()
    (tmp_path / "granted-not/x").write_text(SECRET)
    (tmp_path / "granted/way").symlink_to(tmp_path / "granted-not")
    granted = (tmp_path / "granted").resolve()
    for path in (
        f"{granted}-not/x",
        f"{granted}/../granted-not/x",
        f"{granted}/way/x",
        f"{granted}//..//granted-not/x",
    ):
        with pytest.raises(OpError) as caught:
            await arena.op("files.read", {"path": path}, grants=[f"files:path={granted}/*"])
        assert caught.value.code == "op.denied"
    with pytest.raises(FileMissing):
        await arena.op("files.read", {"path": f"{granted}/x"}, grants=[f"files:path={granted}/*"])
