"""A newcomer who does what the README says gets what it promises."""

import re

MODEL = {"SIDEBAND_AGENT__MODEL": "scripted:demo", "SIDEBAND_PLUGINS__SCRIPTED__SCRIPT": "conversation.toml"}


def test_who_follows_the_readme_has_a_running_skill(newcomer, sideband, page):
    printed = []
    for words in page("README.md").commands():
        if words[0] not in ("run", "chat"):
            done = sideband(*words, folder=newcomer)
            assert done.returncode == 0, (words, done.stderr)
            printed.append(done.stdout)
    assert "nothing to complain about" in printed[0]
    assert printed[1].strip() == "1"
    assert "water the plants" in printed[2]
    assert "sql.execute" in printed[3]
    assert "is whole" in printed[4]


def test_who_follows_the_readme_has_an_agent_that_uses_it(talker, sideband, page):
    commands = page("README.md").commands()
    grant = next(words for words in commands if "notes.add" in words)
    assert sideband(*grant, folder=talker).returncode == 0
    printed = []
    for words in commands:
        if words[0] in ("run", "chat"):
            done = sideband(*words, folder=talker, **MODEL)
            assert done.returncode == 0, (words, done.stderr)
            printed.append(done.stdout)
    assert printed == ["Noted.\n", "You wanted to water the plants.\n", ""]


def test_the_program_in_the_readme_runs(newcomer, sideband, page, run_program):
    for words in page("README.md").commands():
        if "notes.add" in words:
            sideband(*words, folder=newcomer)
    done = run_program(page("README.md").example("python", "anyio.run"), newcomer)
    assert done.returncode == 0, done.stderr
    assert "water the plants" in done.stdout


def test_each_command_that_the_readme_lists_is_there_and_no_other_is(sideband, page):
    readme = page("README.md").text
    listed = re.findall(r"^\| `sideband (\w+)", readme, re.MULTILINE)
    listed += re.findall(r"`sideband (hooks) ", readme)
    there = re.findall(r"^  (\w+)  ", sideband("--help").stdout, re.MULTILINE)
    assert set(listed) == set(there)
