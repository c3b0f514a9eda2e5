import json
from types import SimpleNamespace

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
def there(home, place):
    """Files in the host's folder and elsewhere."""
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


@pytest.mark.parametrize("case", READS)
async def test_a_grant_names_what_may_be_read(files, there, case):
    grant, path, allowed = case
    if allowed:
        assert (await files.read(path, grants=[grant]))["size"]
    else:
        with pytest.raises(OpDenied):
            await files.read(path, grants=[grant])


ELSEWHERE = [
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


@pytest.mark.parametrize("case", ELSEWHERE)
async def test_places_elsewhere_and_hidden_names_are_granted_by_name(files, there, case):
    grant, path, allowed = case
    run = files.read(path.format(there), grants=[grant.format(there)])
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
async def test_nothing_is_changed_with_the_right_to_read(files, there, home, change):
    name, path, params = change
    with pytest.raises(OpDenied):
        await getattr(files, name)(path, grants=["files"], **params)
    assert sorted(one.name for one in home.iterdir()) == ["a", "x"]
    assert (home / "x").read_text() == "x"
    await getattr(files, name)(path, grants=["files:mode=read|write"], **params)


REFUSED = [
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


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case[0]}-{case[2]}")
async def test_what_is_not_granted_is_refused_before_it_begins(host, there, case):
    name, params, grant = case
    with pytest.raises(OpDenied):
        await host.op(f"files.{name}", params, grants=[grant])
    lines = [line for path in host.ledger.folder.glob("*.jsonl") for line in path.read_text().splitlines()]
    assert not [line for line in lines if json.loads(line)["kind"] == "intent"]


async def test_who_may_only_write_can_not_read_by_copying_or_moving(files, there):
    grants = ["files:mode=write", "files:path=mine/*,mode=read|write"]
    for name in ("copy", "move"):
        with pytest.raises(OpDenied, match="mode=read"):
            await getattr(files, name)("x", target="mine/x", grants=grants)


async def test_who_may_only_read_the_source_can_not_move_it(files, there, home):
    grants = ["files", "files:path=mine/*,mode=read|write"]
    with pytest.raises(OpDenied, match="mode=write"):
        await files.move("x", target="mine/x", grants=grants)
    await files.copy("x", target="mine/x", grants=grants)
    assert (home / "x").exists()


async def test_a_folder_is_listed_and_searched_by_who_may_read_all_of_it(files, there):
    for run in (files.list, files.find):
        extra = {"pattern": "*"} if run is files.find else {}
        assert (await run("a", grants=["files:path=a/*"], **extra))["entries"]
        assert (await run(".", grants=["files"], **extra))["entries"]
        for grant in ("files:path=a/x*", "files:path=a", "files:path=a/x", f"files:path={there}/*"):
            with pytest.raises(OpDenied):
                await run("a", grants=[grant], **extra)
        with pytest.raises(OpDenied):
            await run(".", grants=["files:path=a/*"], **extra)


async def test_hidden_names_are_listed_by_who_may_read_them(files, there):
    grants = [f"files:path={there}/*"]
    assert [one["name"] for one in (await files.list(there, grants=grants))["entries"]] == ["a"]
    assert (await files.find(there, pattern="**/config", grants=grants))["entries"] == []
    for run in (files.list(there, hidden=True, grants=grants), files.list(f"{there}/.git", grants=grants)):
        with pytest.raises(OpDenied, match="hidden=yes"):
            await run
    grants = [f"files:path={there}/*,hidden=*"]
    names = [one["name"] for one in (await files.list(there, hidden=True, grants=grants))["entries"]]
    assert names == [".git", "a"]
    found = await files.find(there, pattern="**/config", hidden=True, grants=grants)
    assert [one["name"] for one in found["entries"]] == [".git/config"]


async def test_blobs_need_rights_of_their_own(files, host, there):
    blob = await host.blobs.put(b"x")
    with pytest.raises(OpDenied, match="blobs:mode=write"):
        await files.read("x", kind="blob", grants=["files"])
    for run in (files.write, files.restore):
        with pytest.raises(OpDenied, match="blobs:mode=read"):
            await run("new", blob=blob.sha256, grants=["files:mode=write"])
    await files.write("new", blob=blob.sha256, grants=["files:mode=write", "blobs:mode=read"])


async def test_a_link_lends_no_rights(files, there, home):
    (there / "link").symlink_to(there / "a")
    (there / "out").symlink_to("/etc")
    assert (await files.read(f"{there}/link/x", grants=[f"files:path={there}/a/*"]))["path"] == f"{there}/a/x"
    with pytest.raises(OpDenied):
        await files.read(f"{there}/link/x", grants=[f"files:path={there}/link/*"])
    with pytest.raises(OpDenied, match="/etc/hostname"):
        await files.read(f"{there}/out/hostname", grants=[f"files:path={there}/*"])


class TestTurned:
    """A guard is asked after the grant was compared, and before anything begins."""

    @pytest.fixture
    def more_plugins(self, place):
        @hookimpl
        async def op_call(event):
            if event.op == "files.move":
                (place / "link").unlink()
                (place / "link").symlink_to(place / "b")

        return [Plugin("hook", "turn", SimpleNamespace(op_call=op_call))]

    async def test_what_a_link_leads_to_by_now_is_not_moved_with_the_right_to_read_it(self, files, there):
        (there / "b").mkdir()
        (there / "b/x").write_text("b")
        (there / "link").symlink_to(there / "a")
        grants = [f"files:path={there}/*", f"files:path={there}/a/*|{there}/new,mode=write"]
        with pytest.raises(OpDenied, match=f"{there}/b/x"):
            await files.move(f"{there}/link/x", target=f"{there}/new", grants=grants)
        assert (there / "b/x").read_text() == "b"


async def test_the_hosts_state_is_nobodys_file(files, host, there):
    (host.home / "secret").write_text("x")
    (there / "way").symlink_to(host.home)
    for path in (host.home / "secret", there / "way/secret", host.home / "files/../secret"):
        with pytest.raises(FileRefused, match="belongs to the host"):
            await files.read(path, grants=["files:place=*,hidden=*"])
    for path in (host.home, host.home / "ledger"):
        with pytest.raises(FileRefused, match="belongs to the host"):
            await files.list(path)
    with pytest.raises(FileRefused, match="belongs to the host"):
        await files.write(host.home / "new", content="")


async def test_each_file_of_the_host_has_one_name(files, host, there):
    with pytest.raises(FileRefused, match="absolute") as caught:
        await files.read(host.home / "files/a/x", grants=["files:place=*,hidden=*"])
    assert caught.value.hint == "name it `a/x`"


@pytest.mark.parametrize("path", ["../secret", "a/../../secret", "/proc/self/environ", "/proc/version", "/dev/zero"])
async def test_what_leads_elsewhere_or_is_no_file_is_refused_to_the_user_too(files, there, path):
    with pytest.raises(FileRefused):
        await files.read(path)


async def test_grants_are_shown_with_what_they_leave_out(host):
    grant = await host.broker.ops.grant(["files:path=/srv/*", "files:path=a|/b"])
    assert str(grant) == (
        "files:hidden=no,mode=read,path=/b|a,place=home|system files:hidden=no,mode=read,path=/srv/*,place=system"
    )
