import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband_tools._files._text import stored_text

pytestmark = pytest.mark.anyio


async def test_new_file_is_created_with_its_folders(call, work):
    result = await call("write", path="src/a.py", content="one\n")
    assert result.text == "created src/a.py (1 line, 4 bytes)"
    assert (work / "src" / "a.py").read_text() == "one\n"


async def test_file_that_was_not_read_is_not_replaced(call, work):
    (work / "a.py").write_text("one")
    result = await call("write", path="a.py", content="two")
    assert "was not read before" in result.text
    assert (work / "a.py").read_text() == "one"


async def test_file_that_was_read_is_replaced(call, work):
    (work / "a.py").write_text("one")
    await call("read", path="a.py")
    assert (await call("write", path="a.py", content="two")).text == "replaced a.py (1 line, 3 bytes)"
    assert (await call("write", path="a.py", content="three")).text == "replaced a.py (1 line, 5 bytes)"


@pytest.mark.parametrize(
    ("tool", "arguments"), [("write", {"content": "x"}), ("edit", {"edits": [{"old": "one", "new": "x"}]})]
)
async def test_file_that_was_changed_since_is_not_overwritten(call, work, tool, arguments):
    (work / "a.py").write_text("one")
    await call("read", path="a.py")
    (work / "a.py").write_text("one, changed by another program")
    result = await call(tool, path="a.py", **arguments)
    assert "was changed since it was read" in result.text
    assert (work / "a.py").read_text() == "one, changed by another program"


async def test_edit_of_a_text_that_has_gone_says_that_the_file_was_changed(call, work):
    (work / "a.py").write_text("one")
    await call("read", path="a.py")
    (work / "a.py").write_text("other")
    result = await call("edit", path="a.py", edits=[{"old": "one", "new": "x"}])
    assert "was changed since it was read" in result.text


async def test_file_that_was_deleted_is_created_again(call, work):
    (work / "a.py").write_text("one")
    await call("read", path="a.py")
    (work / "a.py").unlink()
    assert (await call("write", path="a.py", content="two")).text == "created a.py (1 line, 3 bytes)"


async def test_changes_can_be_undone(call, work):
    (work / "a.py").write_text("one")
    await call("read", path="a.py")
    result = await call("edit", path="a.py", edits=[{"old": "one", "new": "two"}])
    host = call.agent.host
    await host.undo(await host.plan_undo(result.metadata["effect"]))
    assert (work / "a.py").read_text() == "one"


async def edited(call, work, content, *edits):
    (work / "a.py").write_bytes(content)
    await call("read", path="a.py")
    return await call("edit", path="a.py", edits=[*edits])


async def test_edits_are_made_in_order_and_shown(call, work):
    edits = [{"old": "b", "new": "B"}, {"old": "B\nc", "new": "x"}]
    result = await edited(call, work, b"a\nb\nc\nd\n", *edits)
    assert (work / "a.py").read_bytes() == b"a\nx\nd\n"
    assert result.text == "changed a.py\n[from line 1]\n@@ -1,4 +1,3 @@\n a\n-b\n-c\n+x\n d"


async def test_no_edit_is_made_if_one_fails(call, work):
    result = await edited(call, work, b"a\nb\n", {"old": "a", "new": "x"}, {"old": "none", "new": "y"})
    assert result.text.startswith("edit 2: `old` does not occur in `a.py`; nothing was changed")
    assert (work / "a.py").read_bytes() == b"a\nb\n"


async def test_text_that_occurs_twice_is_refused_with_its_lines(call, work):
    result = await edited(call, work, b"a\nb\na\n", {"old": "a", "new": "x"})
    assert "`old` occurs 2 times in `a.py`, in the lines 1, 3" in result.text
    assert (work / "a.py").read_bytes() == b"a\nb\na\n"


async def test_every_occurrence_is_replaced_on_request(call, work):
    await edited(call, work, b"a\nb\na\n", {"old": "a", "new": "x", "all": True})
    assert (work / "a.py").read_bytes() == b"x\nb\nx\n"


async def test_other_white_space_is_named_as_the_cause(call, work):
    result = await edited(call, work, b"if x:\n\ty = 1\n", {"old": "if x:\n    y = 1", "new": ""})
    assert "with other spaces or line breaks" in result.text


async def test_ends_of_lines_are_kept(call, work):
    await edited(call, work, b"a\r\nb\r\n", {"old": "a\nb", "new": "a\nx\ny"})
    assert (work / "a.py").read_bytes() == b"a\r\nx\r\ny\r\n"


async def test_mixed_ends_of_lines_are_kept(call, work):
    await edited(call, work, b"a\r\nb\nc\n", {"old": "b", "new": "x"})
    assert (work / "a.py").read_bytes() == b"a\r\nx\nc\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1"])
async def test_encoding_is_kept(call, work, encoding):
    await edited(call, work, "größe\n".encode(encoding), {"old": "größe", "new": "höhe"})
    assert (work / "a.py").read_bytes() == "höhe\n".encode(encoding)


async def test_character_that_the_encoding_lacks_is_refused(call, work):
    result = await edited(call, work, b"gr\xf6\xdfe", {"old": "e", "new": "€"})
    assert "is stored as latin-1, which has no `€`" in result.text
    assert (work / "a.py").read_bytes() == b"gr\xf6\xdfe"


async def test_edit_of_a_file_that_was_not_read_is_refused(call, work):
    (work / "a.py").write_text("one")
    assert "was not read before" in (await call("edit", path="a.py", edits=[{"old": "one", "new": "x"}])).text


@given(st.one_of(st.binary(max_size=40), st.text(max_size=40).map(lambda text: text.encode("utf-16"))))
def test_text_that_is_not_changed_is_stored_as_it_was(data):
    found = stored_text(data)
    if found is not None:
        assert found.encode(found.text) == data


async def test_replacements_cannot_fill_the_memory(call, work):
    (work / "a.py").write_text("x")
    await call("read", path="a.py")
    result = await call("edit", path="a.py", edits=[{"old": "x", "new": "xx", "all": True}] * 100)
    assert result.metadata["code"] == "tools.text_size"
    assert "would have 33,554,432 characters" in result.text
    assert (work / "a.py").read_text() == "x"


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".GIT/config", "sub/.git", "link/hooks/pre-commit"])
async def test_files_that_name_programs_for_git_cannot_be_changed(call, work, path):
    (work / ".git" / "hooks").mkdir(parents=True)
    (work / "link").symlink_to(work / ".git")
    for tool, arguments in (("write", {"content": "x"}), ("edit", {"edits": [{"old": "a", "new": "b"}]})):
        result = await call(tool, path=path, **arguments)
        assert result.metadata["code"] == "tools.protected"
    assert not [*(work / ".git" / "hooks").iterdir()]


async def test_files_with_a_similar_name_can_be_changed(call, work):
    for path in (".gitignore", ".github/x.yml", "a.git/x"):
        assert not (await call("write", path=path, content="x")).is_error
