import json

import pytest
import sideband_blobs.plugin
from sideband import Plugin, hookimpl
from sideband.ops import OpDenied
from sideband_confined_files import FileRefused

pytestmark = pytest.mark.anyio


@pytest.fixture
def more_plugins():
    return [Plugin("op", "blobs", sideband_blobs.plugin)]


@pytest.fixture
def folder(home, place):
    """Files in the host's folder and in another folder."""
    (home / "a").mkdir()
    (home / "a/x").write_text("in a")
    (home / "x").write_text("x")
    (place / "a").mkdir()
    (place / "a/x").write_text("elsewhere")
    (place / ".git").mkdir()
    (place / ".git/config").write_text("hidden")
    return place


READS = [
    ("files", "x", True),
    ("files", "a/x", True),
    ("files:path=x", "x", True),
    ("files:path=x", "a/x", False),
    ("files:path=a/*", "a/x", True),
    ("files:path=a/*", "x", False),
    ("files:mode=write", "x", False),
    ("files:mode=read|write", "x", True),
    ("files:path=*", "x", True),
]


@pytest.mark.parametrize("case", READS, ids=lambda case: f"{case[0]}-{case[1]}")
async def test_grant_limits_what_can_be_read(files, folder, case):
    grant, path, allowed = case
    if allowed:
        assert (await files.read(path, grants=[grant]))["size"]
    else:
        with pytest.raises(OpDenied):
            await files.read(path, grants=[grant])


SYSTEM_READS = [
    ("files", "{}/a/x", False),
    ("files:path=*", "{}/a/x", False),
    ("files:place=*", "{}/a/x", True),
    ("files:path={}/*", "{}/a/x", True),
    ("files:path={}/a/x", "{}/a/x", True),
    ("files:path={}/*", "{}/../place/a//x", True),
    ("files:path={}/*", "x", False),
    ("files:path=x|{}/*", "x", True),
    ("files:path={}/b/*", "{}/a/x", False),
    ("files:path={}/*", "{}/.git/config", False),
    ("files:path={}/*,hidden=*", "{}/.git/config", True),
    ("files:path={}/*,hidden=*", "{}/a/x", True),
    ("files:path={}/*,hidden=yes", "{}/a/x", False),
]


@pytest.mark.parametrize("case", SYSTEM_READS, ids=lambda case: f"{case[0]}-{case[1]}")
async def test_absolute_paths_and_hidden_names_must_be_granted(files, folder, case):
    grant, path, allowed = case
    run = files.read(path.format(folder), grants=[grant.format(folder)])
    if allowed:
        assert (await run)["size"]
    else:
        with pytest.raises(OpDenied):
            await run


CHANGES = [
    ("write", "x", {"content": "", "overwrite": True}),
    ("delete", "x", {}),
    ("make_folder", "new", {}),
    ("move", "x", {"target": "y"}),
    ("copy", "x", {"target": "y"}),
    ("restore", "x", {"expected": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"}),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change[0])
async def test_read_grant_does_not_allow_changes(files, folder, home, change):
    name, path, params = change
    with pytest.raises(OpDenied):
        await getattr(files, name)(path, grants=["files"], **params)
    assert sorted(one.name for one in home.iterdir()) == ["a", "x"]
    assert (home / "x").read_text() == "x"
    await getattr(files, name)(path, grants=["files:mode=read|write"], **params)


DENIED = [
    *((name, {"path": path, **params}, "files") for name, path, params in CHANGES),
    *(("copy", {"path": "x", "target": "y"}, grant) for grant in ("files:mode=write", "files")),
    *(("move", {"path": "x", "target": "y"}, grant) for grant in ("files:mode=write", "files:path=x,mode=read|write")),
    ("move", {"path": "x", "target": "y"}, "files:path=y,mode=read|write"),
    *((name, {"path": "x"}, "files:path=y") for name in ("read", "stat", "list")),
    ("read", {"path": "x", "kind": "blob"}, "files"),
    ("write", {"path": "y", "blob": "0" * 64}, "files:mode=write"),
    ("find", {"path": "a", "pattern": "*"}, "files:path=y"),
    ("list", {"path": "a", "hidden": True}, "files"),
]


@pytest.mark.parametrize("case", DENIED, ids=lambda case: f"{case[0]}-{case[2]}")
async def test_op_without_a_grant_is_denied_without_an_intent(host, folder, case):
    name, params, grant = case
    with pytest.raises(OpDenied):
        await host.op(f"files.{name}", params, grants=[grant])
    lines = [line for path in host.ledger.folder.glob("*.jsonl") for line in path.read_text().splitlines()]
    assert not [line for line in lines if json.loads(line)["kind"] == "intent"]


async def test_copy_and_move_need_a_read_grant_for_the_source(files, folder):
    grants = ["files:mode=write", "files:path=mine/*,mode=read|write"]
    for name in ("copy", "move"):
        with pytest.raises(OpDenied, match="mode=read"):
            await getattr(files, name)("x", target="mine/x", grants=grants)


async def test_move_needs_a_write_grant_for_the_source(files, folder, home):
    grants = ["files", "files:path=mine/*,mode=read|write"]
    with pytest.raises(OpDenied, match="mode=write"):
        await files.move("x", target="mine/x", grants=grants)
    await files.copy("x", target="mine/x", grants=grants)
    assert (home / "x").exists()


async def test_list_and_find_need_a_grant_for_the_whole_folder(files, folder):
    for run in (files.list, files.find):
        extra = {"pattern": "*"} if run is files.find else {}
        assert (await run("a", grants=["files:path=a/*"], **extra))["entries"]
        assert (await run(".", grants=["files"], **extra))["entries"]
        for grant in ("files:path=a/x*", "files:path=a", "files:path=a/x", f"files:path={folder}/*"):
            with pytest.raises(OpDenied):
                await run("a", grants=[grant], **extra)
        with pytest.raises(OpDenied):
            await run(".", grants=["files:path=a/*"], **extra)


async def test_hidden_names_are_only_listed_if_granted(files, folder):
    grants = [f"files:path={folder}/*"]
    assert [one["name"] for one in (await files.list(folder, grants=grants))["entries"]] == ["a"]
    assert (await files.find(folder, pattern="**/config", grants=grants))["entries"] == []
    for run in (files.list(folder, hidden=True, grants=grants), files.list(f"{folder}/.git", grants=grants)):
        with pytest.raises(OpDenied, match="hidden=yes"):
            await run
    grants = [f"files:path={folder}/*,hidden=*"]
    names = [one["name"] for one in (await files.list(folder, hidden=True, grants=grants))["entries"]]
    assert names == [".git", "a"]
    found = await files.find(folder, pattern="**/config", hidden=True, grants=grants)
    assert [one["name"] for one in found["entries"]] == [".git/config"]


async def test_blobs_need_their_own_grants(files, host, folder):
    blob = await host.blobs.put(b"x")
    with pytest.raises(OpDenied, match="blobs:mode=write"):
        await files.read("x", kind="blob", grants=["files"])
    for run in (files.write, files.restore):
        with pytest.raises(OpDenied, match="blobs:mode=read"):
            await run("new", blob=blob.sha256, grants=["files:mode=write"])
    await files.write("new", blob=blob.sha256, grants=["files:mode=write", "blobs:mode=read"])


async def test_grant_applies_to_the_target_of_a_link(files, folder, home):
    (folder / "link").symlink_to(folder / "a")
    (folder / "out").symlink_to("/etc")
    assert (await files.read(f"{folder}/link/x", grants=[f"files:path={folder}/a/*"]))["path"] == f"{folder}/a/x"
    with pytest.raises(OpDenied):
        await files.read(f"{folder}/link/x", grants=[f"files:path={folder}/link/*"])
    with pytest.raises(OpDenied, match="/etc/hostname"):
        await files.read(f"{folder}/out/hostname", grants=[f"files:path={folder}/*"])


class TestLinkChangedByAGuard:
    """A guard runs after the grant check and before the op."""

    @pytest.fixture
    def more_plugins(self, place):
        @hookimpl
        async def op_call(event):
            if event.op == "files.move":
                (place / "link").unlink()
                (place / "link").symlink_to(place / "b")

        return [Plugin("guard", "relink", type("Guard", (), {"op_call": staticmethod(op_call)}))]

    async def test_grant_is_checked_again_after_the_link_changed(self, files, folder):
        (folder / "b").mkdir()
        (folder / "b/x").write_text("b")
        (folder / "link").symlink_to(folder / "a")
        grants = [f"files:path={folder}/*", f"files:path={folder}/a/*|{folder}/new,mode=write"]
        with pytest.raises(OpDenied, match=f"{folder}/b/x"):
            await files.move(f"{folder}/link/x", target=f"{folder}/new", grants=grants)
        assert (folder / "b/x").read_text() == "b"


async def test_state_of_the_host_is_inaccessible(files, host, folder):
    (host.home / "secret").write_text("x")
    (folder / "way").symlink_to(host.home)
    for path in (host.home / "secret", folder / "way/secret", host.home / "files/../secret"):
        with pytest.raises(FileRefused, match="belongs to the host"):
            await files.read(path, grants=["files:place=*,hidden=*"])
    for path in (host.home, host.home / "ledger"):
        with pytest.raises(FileRefused, match="belongs to the host"):
            await files.list(path)
    with pytest.raises(FileRefused, match="belongs to the host"):
        await files.write(host.home / "new", content="")


async def test_absolute_path_of_a_host_file_is_rejected(files, host, folder):
    with pytest.raises(FileRefused, match="relative") as caught:
        await files.read(host.home / "files/a/x", grants=["files:place=*,hidden=*"])
    assert caught.value.hint == "use `a/x`"


@pytest.mark.parametrize("path", ["../secret", "a/../../secret", "/proc/self/environ", "/proc/version", "/dev/zero"])
async def test_unsafe_paths_are_rejected_even_without_grants(files, folder, path):
    with pytest.raises(FileRefused):
        await files.read(path)


async def test_grant_text_includes_the_defaults(host):
    grant = await host.broker.ops.grant(["files:path=/srv/*", "files:path=a|/b"])
    assert str(grant) == (
        "files:hidden=no,mode=read,path=/b|a,place=home|system files:hidden=no,mode=read,path=/srv/*,place=system"
    )
