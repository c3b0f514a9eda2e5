import pytest

pytestmark = pytest.mark.anyio


@pytest.fixture
def tree(work):
    (work / "src").mkdir()
    (work / ".gitignore").write_text("*.log\n")
    (work / "a.log").write_text("hello\n")
    (work / "b.txt").write_text("one\nhello\nthree\n")
    (work / "src" / "c.py").write_text("print('hello')\nprint('Hello')\n")
    return work


async def test_lines_are_shown_by_file(call, tree):
    result = await call("grep", pattern="hello")
    assert result.text == "b.txt\n2: hello\n\nsrc/c.py\n1: print('hello')\n[2 matches in 2 files]"


async def test_context_is_marked(call, tree):
    result = await call("grep", pattern="hello", path="b.txt", context=1)
    assert result.text == "b.txt\n1- one\n2: hello\n3- three\n[1 match in 1 file]"


async def test_rules_above_the_folder_apply(call, tree):
    (tree / "src" / "d.log").write_text("hello")
    assert "d.log" not in (await call("grep", pattern="hello", path="src")).text
    assert "d.log" in (await call("grep", pattern="hello", path="src", ignored=True)).text


async def test_files_are_selected_by_name(call, tree):
    assert "b.txt" not in (await call("grep", pattern="hello", names=["*.py"])).text


async def test_no_match_is_reported(call, tree):
    assert (await call("grep", pattern="nothing")).text == "[no line matches in 2 files]"


async def test_limit_is_reported(call, tree):
    result = await call("grep", pattern=".", limit=1)
    assert result.text.endswith("[1 match in 1 file; there are more matches: use a narrower pattern, or `names`]")


async def test_invalid_expression_is_an_error(call, tree):
    result = await call("grep", pattern="(")
    assert (result.is_error, "is not a valid regular expression" in result.text) == (True, True)


async def test_folder_outside_of_the_places_is_refused(call, tree):
    assert "is outside of the folders" in (await call("grep", pattern="x", path="..")).text
