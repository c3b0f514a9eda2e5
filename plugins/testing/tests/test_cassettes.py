"""The fixture `cassette`."""

import pytest

COUNTED = '''
from pathlib import Path

COUNT = Path(__file__).with_name("count.txt")

@op("dice.roll")
async def roll(params: Params, ctx) -> str:
    """Count how often it really ran."""
    count = int(COUNT.read_text()) + 1 if COUNT.exists() else 1
    COUNT.write_text(str(count))
    return f"{params.text} {count}"

DICE = Plugin("op", "dice", type("Dice", (), {"sideband_ops": lambda: OpFamily(name="dice", ops=(roll,))}))
'''

TEST = (
    COUNTED
    + """
async def test_it(sideband_host, cassette, tmp_path):
    async with sideband_host(DICE, cassette=cassette) as host:
        assert await host.op("dice.roll", {"text": str(tmp_path / "file")}) == str(tmp_path / "file") + " 1"

class TestMore:
    @pytest.mark.parametrize("text", ["a b", "c/d"])
    async def test_names(self, sideband_host, cassette, text):
        async with sideband_host(DICE, cassette=cassette) as host:
            assert "record" not in cassette.mode or await host.op("dice.roll", {"text": text})
"""
)


def test_effects_are_recorded_beside_the_test_and_replayed_on_each_event_loop(run_tests, pytester):
    result = run_tests(TEST, "--sideband-record=all", "-k", "test_it or test_names")
    result.assert_outcomes(passed=3)
    folder = pytester.path / "cassettes" / "test_author"
    names = ["TestMore-test_names-a_b.json", "TestMore-test_names-c_d.json", "test_it.json"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert str(pytester.path) not in (folder / "test_it.json").read_text()
    run_tests(TEST, "-k", "test_it", backends=["asyncio", "trio"]).assert_outcomes(passed=2, deselected=4)
    assert (pytester.path / "count.txt").read_text() == "3"


def test_only_missing_effects_happen_with_the_option_missing(run_tests, pytester):
    once = (
        COUNTED
        + """
async def test_it(sideband_host, cassette):
    async with sideband_host(DICE, cassette=cassette) as host:
        for text in {texts}:
            await host.op("dice.roll", {{"text": text}})
"""
    )
    for texts, count in ((["a"], "1"), (["a", "b"], "2"), (["a", "b"], "2")):
        run_tests(once.replace("{texts}", repr(texts)).replace("{{", "{").replace("}}", "}"),
                  "--sideband-record=missing").assert_outcomes(passed=1)  # fmt: skip
        assert (pytester.path / "count.txt").read_text() == count


def test_missing_cassette_and_divergence_name_the_command_that_records(run_tests):
    result = run_tests(TEST, "-k", "test_it")
    result.assert_outcomes(errors=1, deselected=2)
    command = "pytest --sideband-record=missing 'test_author.py::test_it?asyncio?'"
    result.stdout.fnmatch_lines([f"*the cassette */test_author/test_it.json of this test does not exist: *`{command}`"])

    run_tests(TEST, "--sideband-record=all", "-k", "test_it").assert_outcomes(passed=1, deselected=2)
    result = run_tests(TEST.replace('tmp_path / "file")})', 'tmp_path / "other")})'), "-k", "test_it")
    result.assert_outcomes(failed=1, deselected=2)
    result.stdout.fnmatch_lines(
        ["*the replay of test_it.json stopped*", "*record them with `pytest --sideband-record=all*"]
    )


@pytest.mark.parametrize("block", ["async with worker.open(folder):", "if True:"])
def test_calls_of_a_worker_share_a_cassette_in_a_block_only(run_tests, block):
    source = f"""
        from sideband_testing import KitError

        SOURCE = '''
            from sideband.skill import echo, tool

            @tool
            async def repeat(text: str) -> str:
                return await echo.say(text=text)
        '''

        async def test_it(worker, cassette):
            worker.use(ECHO, "loader.skills", cassette=cassette)
            folder = worker.skill("parrot", SOURCE, capabilities="echo")
            {block}
                assert await worker.call(folder, "repeat", grants="echo", text="one") == "one"
                assert await worker.call(folder, "repeat", grants="echo", text="two") == "two"
    """
    result = run_tests(source, "--sideband-record=all")
    if block == "if True:":
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(
            ["*KitError: a cassette has the effects of one host*: write `async with worker.open*"]
        )
    else:
        result.assert_outcomes(passed=1)
        run_tests(source).assert_outcomes(passed=1)
