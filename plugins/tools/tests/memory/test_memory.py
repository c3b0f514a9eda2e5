import pytest
from sideband_agent import Agent

pytestmark = pytest.mark.anyio


@pytest.fixture
def grants():
    return ["files:path=memory/*,mode=read|write"]


async def test_note_outlives_the_session(scripted_host, work, calling):
    host, script = scripted_host()
    async with host as opened:
        async with Agent(opened, folder=work) as agent:
            result = await calling(agent, script)("memory", action="write", name="build", text="Run make.")
            assert result.text == "wrote the note `build`"
        async with Agent(opened, folder=work) as agent:
            assert (await calling(agent, script)("memory", action="read", name="build")).text == "Run make."


async def test_notes_are_listed_replaced_and_deleted(call):
    assert (await call("memory", action="list")).text == "[there are no notes]"
    for name in ("build", "style"):
        await call("memory", action="write", name=name, text="one")
    assert (await call("memory", action="write", name="style", text="two")).text == "replaced the note `style`"
    assert (await call("memory", action="list")).text == "build\nstyle"
    await call("memory", action="delete", name="build")
    assert (await call("memory", action="list")).text == "style"


async def test_search_finds_the_note_with_most_words_first(call):
    await call("memory", action="write", name="build", text="Run make.\nIt needs clang.")
    await call("memory", action="write", name="style", text="Run the formatter before you commit.")
    result = await call("memory", action="search", query="commit: run formatter?")
    assert result.text == "style\n  Run the formatter before you commit.\nbuild\n  Run make."
    assert (await call("memory", action="search", query="weather")).text == "[no note contains a word of `weather`]"
    assert (await call("memory", action="search", query="?!")).text == "[no note contains a word of `?!`]"


async def test_search_compares_stems_and_names_and_prefers_rare_words(call):
    await call("memory", action="write", name="deployment", text="Ask Ada first.")
    await call("memory", action="write", name="style", text="The server logs in English.\nIt commits each hour.")
    await call("memory", action="write", name="server", text="The server listens on port 8443.")
    result = await call("memory", action="search", query="how was it committed")
    assert result.text == "style\n  It commits each hour."
    assert (await call("memory", action="search", query="deployments")).text == "deployment"
    result = await call("memory", action="search", query="the server port")
    assert result.text.startswith("server\n  The server listens on port 8443.\nstyle\n")


async def test_search_among_many_notes_says_what_it_left_out(call):
    for number in range(3):
        lines = [f"line {one}" for one in range(780)]
        await call("memory", action="write", name=f"long-{number}", text="\n".join([*lines, f"zebra {number}"]))
    found = await call("memory", action="search", query="zebras")
    assert sorted(found.text.split("\n")) == sorted(
        [line for number in range(3) for line in (f"long-{number}", f"  zebra {number}")]
    )
    found = await call("memory", action="search", query="line")
    assert found.text.endswith("[there are too many notes, and some were not searched: use rarer words]")


async def test_search_without_notes_is_reported(call):
    assert (await call("memory", action="search", query="build")).text == "[there are no notes]"


@pytest.mark.parametrize("action", ["read", "delete"])
async def test_missing_note_is_an_error(call, action):
    result = await call("memory", action=action, name="build")
    assert (result.metadata["code"], "there is no note `build`" in result.text) == ("tools.note", True)


async def test_missing_parameter_is_named(call):
    result = await call("memory", action="write", name="build")
    assert (result.metadata["code"], "`write` needs `text`" in result.text) == ("tools.parameter", True)


@pytest.mark.parametrize("name", ["../x", "a/b", ".x", "A", ""])
async def test_name_cannot_be_a_path(call, name):
    result = await call("memory", action="write", name=name, text="x")
    assert (result.is_error, "`name`" in result.text) == (True, True)


async def test_note_is_a_file_whose_change_can_be_undone(call):
    await call("memory", action="write", name="build", text="one")
    result = await call("memory", action="write", name="build", text="two")
    host = call.agent.host
    (file,) = (host.home / "files" / "memory").glob("*/build.md")
    assert file.read_text() == "two"
    await host.undo(await host.plan_undo(result.metadata["effect"]))
    assert file.read_text() == "one"
