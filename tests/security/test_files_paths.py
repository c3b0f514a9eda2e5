"""Hostile paths in every field of every op on files, with the widest possible grant."""

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

SECRET = "a secret"

TRICKS = {
    "dot-dot": "../outside/secret",
    "dot-dot after a folder": "a/../../outside/secret",
    "dot-dot, encoded": "..%2foutside%2fsecret",
    "dot-dot, backslashes": "..\\outside\\secret",
    "dot-dot, full-width dots": "\uff0e\uff0e/outside/secret",
    "dot-dot, spaces": ".. /outside/secret",
    "the parent folder": "..",
    "a link to a file": "link",
    "a link to a folder": "way/secret",
    "a dangling link": "dangling",
    "a link loop": "loop/x",
    "home": "~/secret",
    "another home": "~root/secret",
    "nul": "a\0/../../outside/secret",
    "newline": "a\nb",
    "escape sequence": "\x1b]0;x\x07",
    "right to left": "a\u202etxt",
    "lone surrogate": "\ud800",
    "combining character": "e\u0301",
    "a drive": "C:\\outside\\secret",
    "an alternate data stream": "x:$DATA",
    "a pipe": "pipe",
    "a socket": "socket",
    "the state of the host": "{home}/ledger",
    "the state of the host, through its files": "{home}/files/../sideband.toml",
    "the files of the host, absolute": "{home}/files/x",
    "a hidden file": ".git/config",
    "long": "a" * 300,
    "very long": "a" * 5_000,
    "deep": "/".join(["a"] * 2_000),
    "many dot-dots": "../" * 1_300 + "outside/secret",
    "a file as a folder": "x/y",
}

# System paths. They are only read, because the tests may run as root.
SYSTEM = {
    "a device": "/dev/zero",
    "an endless device": "/dev/urandom",
    "a terminal": "/dev/tty",
    "a network share": "//server/share/secret",
    "the environment": f"/proc/{os.getpid()}/environ",
    "the environment, through self": "/proc/self/environ",
    "the memory": f"/proc/{os.getpid()}/mem",
    "a descriptor": "/proc/self/fd/0",
    "the root of a process": "/proc/self/root/proc/version",
    "sysfs": "/sys/kernel/notes",
    "deep": "/" + "/".join(["a"] * 2_000),
}

# The parameters of each op; None is replaced by the path.
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
# These paths are valid names of files below the host's folder.
HARMLESS = {"dot-dot, encoded", "dot-dot, full-width dots"}


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
    """Return a function that runs an op, and returns the code of its error or `None`, and its answer."""

    async def run(name, params, grants):
        try:
            answer = await arena.op(f"files.{name}", params, grants=grants)
        except OpError as error:
            return error.code, None
        return None, answer

    return run


REFUSED = {"file.refused", "file.missing", "op.params", "op.denied", "file.taken"}


@pytest.mark.parametrize("trick", TRICKS)
async def test_path_does_not_escape_in_any_field(arena, tmp_path, trick, refusal):
    path = TRICKS[trick].format(home=arena.home)
    before = state_of(tmp_path / "outside")
    # The grant covers the folder of the host too, so that the capability alone does not deny its state.
    grants = ["files:mode=read|write", f"files:path={tmp_path.resolve()}/*,hidden=*,mode=*", "blobs"]
    for name, forms in FIELDS.items():
        for form in forms:
            params = {key: path if value is None else value for key, value in form.items()}
            code, answer = await refusal(name, params, grants)
            assert code in REFUSED or trick in HARMLESS or (name == "stat" and not params["digest"]), (params, answer)
            assert SECRET not in repr(answer)
    assert state_of(tmp_path / "outside") == before
    assert arena.home.joinpath("sideband.toml").read_text() == ""


async def test_special_files_of_the_system_are_not_read(refusal):
    wrong = {}
    for place, path in SYSTEM.items():
        for name in ("read", "list", "find", "stat"):
            for form in FIELDS[name]:
                params = {key: path if value is None else value for key, value in form.items()}
                code, answer = await refusal(name, params, ["files:place=*,hidden=*", "blobs"])
                if code not in ("file.refused", "file.missing", "file.failed"):
                    wrong[f"{name}: {place}"] = (code, answer)
    assert wrong == {}


async def test_stat_of_a_link_describes_the_link(arena):
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
    """Return a name that a process switches between a folder, a link to the outside and nothing as fast as possible."""
    root = arena.home / "files"
    (root / "real").mkdir()
    words = [sys.executable, "-c", SWAPPER, root / "swapped", root / "real", root / "way"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield "swapped"
        process.kill()


async def test_folder_swapped_for_a_link_does_not_lead_outside(swapped, tmp_path, refusal):
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
    """Return a granted folder with a link that a process switches between a target inside and outside of it."""
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


async def test_link_changed_after_the_grant_check_gives_no_access(arena, granted, refusal):
    for _ in range(300):
        code, answer = await refusal("read", {"path": f"{granted}/way/secret"}, [f"files:path={granted}/*"])
        assert code in (None, "op.denied", "file.missing", "file.refused")
        assert answer is None or answer["content"] == "mine"


async def test_grant_for_a_folder_covers_no_other_folder(arena, tmp_path):
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
