"""The commands and programs of the pages for users work: the start page, skills, capabilities and Python."""

SKILLS, CAPABILITIES, PYTHON = "docs/skills.md", "docs/capabilities.md", "docs/python.md"


def test_commands_create_and_call_a_skill(newcomer, sideband, page):
    printed = []
    for words in page(SKILLS).commands():
        done = sideband(*words, folder=newcomer)
        assert done.returncode == 0, (words, done.stderr)
        printed.append(done.stdout)
    _, added, found, tail, verified = printed
    assert added.strip() == "1"
    assert "water the plants" in found
    assert "sql.execute" in tail
    assert "ledger" in verified


def test_grants_in_the_configuration_let_the_skill_run_without_a_question(newcomer, sideband, page):
    (newcomer / "home").mkdir()
    (newcomer / "home" / "sideband.toml").write_text(page(CAPABILITIES).example("toml", "[grants]"))
    assert sideband("call", "--skill-dir", "skills", "notes.add", "text=x", folder=newcomer).returncode == 0


def test_program_uses_the_skill(newcomer, sideband, page, run_program):
    for words in page(SKILLS).commands():
        if "notes.add" in words:
            sideband(*words, folder=newcomer)
    done = run_program(page(PYTHON).example("python", "anyio.run"), newcomer)
    assert done.returncode == 0, done.stderr
    assert "water the plants" in done.stdout


def test_start_page_works_as_shown(walk, tmp_path):
    walk("docs/index.md", tmp_path)


def test_agent_works_in_a_folder_as_shown(walk, tmp_path):
    walk("docs/working.md", tmp_path)
