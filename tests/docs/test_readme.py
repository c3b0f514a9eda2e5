"""The commands and programs of the README work."""

import re

MODEL = {"SIDEBAND_AGENT__MODEL": "scripted:demo", "SIDEBAND_PLUGINS__SCRIPTED__SCRIPT": "home/conversation.toml"}


def test_readme_commands_create_and_call_a_skill(newcomer, sideband, page):
    printed = []
    for words in page("README.md").commands():
        if words[0] not in ("run", "chat"):
            done = sideband(*words, folder=newcomer)
            assert done.returncode == 0, (words, done.stderr)
            printed.append(done.stdout)
    _, added, found, tail, verified = printed
    assert added.strip() == "1"
    assert "water the plants" in found
    assert "sql.execute" in tail
    assert "ledger" in verified


def test_readme_grants_let_the_skill_run_without_a_question(newcomer, sideband, page):
    (newcomer / "home").mkdir()
    (newcomer / "home" / "sideband.toml").write_text(page("README.md").example("toml", "[grants]"))
    assert sideband("call", "--skill-dir", "skills", "notes.add", "text=x", folder=newcomer).returncode == 0


def test_readme_commands_run_an_agent_that_uses_the_skill(talker, sideband, page):
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


def test_readme_program_runs(newcomer, sideband, page, run_program):
    for words in page("README.md").commands():
        if "notes.add" in words:
            sideband(*words, folder=newcomer)
    done = run_program(page("README.md").example("python", "anyio.run"), newcomer)
    assert done.returncode == 0, done.stderr
    assert "water the plants" in done.stdout


def test_readme_lists_exactly_the_available_commands(sideband, page):
    readme = page("README.md").text
    listed = re.findall(r"^\| `sideband (\w+)", readme, re.MULTILINE)
    listed += re.findall(r"`sideband (hooks) ", readme)
    available = re.findall(r"^  (\w+)  ", sideband("--help").stdout, re.MULTILINE)
    assert set(listed) == set(available)
