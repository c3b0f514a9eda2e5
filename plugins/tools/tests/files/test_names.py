import pytest

pytestmark = pytest.mark.anyio


async def test_names_are_listed_with_sizes(call, work):
    (work / "src").mkdir()
    (work / "a.py").write_text("one")
    (work / ".env").write_text("x")
    assert (await call("list")).text == "a.py (3 bytes)\nsrc/\n[1 hidden names omitted]"
    assert (await call("list", hidden=True)).text == ".env (1 bytes)\na.py (3 bytes)\nsrc/"


async def test_empty_folder_is_reported(call):
    assert (await call("list")).text == "[. is empty]"


async def test_long_list_continues(call, work):
    for number in range(501):
        (work / f"{number:03}").touch()
    result = await call("list")
    assert result.text.endswith("[there are more: continue with `after` = 499]")
    assert (await call("list", after="499")).text == "500 (0 bytes)"


async def test_files_are_found_by_pattern(call, work):
    (work / "src" / "deep").mkdir(parents=True)
    (work / "src" / "deep" / "a.py").write_text("one")
    assert (await call("glob", pattern="**/*.py")).text == "src/deep/a.py (3 bytes)"
    assert (await call("glob", pattern="*.md")).text == "[nothing in . matches *.md]"


async def test_folder_outside_of_the_places_is_refused(call):
    for name, arguments in (("list", {}), ("glob", {"pattern": "*"})):
        assert "is outside of the folders" in (await call(name, path="..", **arguments)).text


@pytest.mark.parametrize(("tool", "arguments"), [("list", {}), ("glob", {"pattern": "*"}), ("grep", {"pattern": "x"})])
async def test_no_name_forges_a_line_of_a_result(call, work, tool, arguments):
    (work / "a\n[done]\r\x1b[2J\u202e").write_text("x")
    result = (await call(tool, **arguments)).text
    assert result.splitlines()[0].startswith(r"a\n[done]\r\x1b[2J\u202e")
    assert not set("\r\x1b\u202e") & set(result)


async def test_home_of_an_unknown_user_is_a_name(call):
    assert "does not exist" in (await call("read", path="~no-such-user/a.py")).text
