"""Scripts of skills, run in the isolation of the system."""

import pytest
from sideband.approvals import Approval
from sideband.ops import OpError

pytestmark = pytest.mark.anyio


async def test_script_gets_its_arguments_and_its_input(call, make_skill):
    make_skill({"scripts/run.py": "import sys\nprint(sys.argv[1:], sys.stdin.read())\n"})
    result = await call("skill_run", name="report", script="scripts/run.py", arguments=["a b", "-c"], input="hello")
    assert not result.is_error, result.text
    assert result.text == "['a b', '-c'] hello\n[exit code 0]\n[it wrote no files in its working directory]"


async def test_script_imports_its_folder_and_the_package_of_its_skill(call, make_skill):
    make_skill({
        "scripts/__init__.py": "",
        "scripts/words.py": "WORD = 'hello'\n",
        "scripts/near.py": "NEAR = 'near'\n",
        "scripts/run.py": "import near\nfrom scripts.words import WORD\nprint(WORD, near.NEAR)\n",
    })  # fmt: skip
    assert (await call("skill_run", name="report", script="scripts/run.py")).text.startswith("hello near\n")


async def test_packages_of_the_script_s_own_block_are_installed(call, make_skill, approver):
    block = '# /// script\n# dependencies = ["tiny"]\n# ///\nimport tiny\nprint(tiny.SIZE)\n'
    make_skill({"scripts/run.py": block, "scripts/other.py": "# /// script\n# dependencies = ['huge']\n# ///\n"})
    assert (await call("skill_run", name="report", script="scripts/run.py")).text.startswith("7\n")
    (request,) = approver.requests
    assert "skills:allow=none/,package=tiny,script=none/" in request.effect["capabilities"]


async def test_packages_of_a_listing_are_installed(call, make_skill):
    files = {"requirements.txt": "# comment\ntiny>=1  # why\n", "scripts/run.py": "import tiny\nprint(tiny.SIZE)\n"}
    make_skill(files)
    assert (await call("skill_run", name="report", script="scripts/run.py")).text.startswith("7\n")


async def test_undeclared_packages_are_named_by_the_model(call, make_skill):
    make_skill({"scripts/run.py": "import tiny\nprint(tiny.SIZE)\n"})
    failed = await call("skill_run", name="report", script="scripts/run.py")
    assert failed.is_error
    assert "the module tiny is not installed (packages: none); pass its package in `packages`" in failed.text
    assert (await call("skill_run", name="report", script="scripts/run.py", packages=["tiny"])).text.startswith("7\n")


async def test_packages_do_not_replace_modules_of_python_or_the_skill(call, make_skill):
    make_skill({"scripts/tiny.py": "SIZE = 'own'\n", "scripts/run.py": "import tiny\nprint(tiny.SIZE)\n"})
    result = await call("skill_run", name="report", script="scripts/run.py", packages=["tiny"])
    assert result.text.startswith("own\n")


async def test_programs_that_a_script_starts_import_the_same(call, make_skill):
    started = "import subprocess, sys\nprint(subprocess.run([sys.executable, '-m', 'scripts.other'], text=True, "
    started += "capture_output=True).stdout)\n"
    make_skill({"scripts/run.py": started, "scripts/other.py": "import tiny\nprint('other', tiny.SIZE)\n"})
    result = await call("skill_run", name="report", script="scripts/run.py", packages=["tiny"])
    assert result.text.startswith("other 7\n"), result.text


async def test_addresses_are_refused_as_packages(call, make_skill):
    make_skill({"scripts/run.py": "print(1)\n"})
    result = await call("skill_run", name="report", script="scripts/run.py", packages=["tiny @ https://example.com/t"])
    assert (result.is_error, result.metadata["code"]) == (True, "skills.requirements")
    assert "address or path instead of a package name" in result.text


async def test_packages_that_do_not_exist_are_an_error_and_the_script_does_not_run(call, make_skill):
    make_skill({"scripts/run.py": "print('ran')\n"})
    result = await call("skill_run", name="report", script="scripts/run.py", packages=["missing"])
    assert (result.is_error, result.metadata["code"]) == (True, "skills.packages")
    assert "ran" not in result.text.splitlines()


async def test_shell_script_runs(call, make_skill):
    make_skill({"scripts/run.sh": 'echo "$1"; cat references/words.md 2>&1; cat "$(dirname "$0")/../SKILL.md"\n'})
    result = await call("skill_run", name="report", script="scripts/run.sh", arguments=["x  y"])
    assert result.text.startswith("x  y\n")
    assert "Makes reports" in result.text


async def test_script_of_node_runs(call, make_skill, node):
    make_skill({"scripts/run.js": "console.log(process.argv.slice(2).join('+'))\n"})
    result = await call("skill_run", name="report", script="scripts/run.js", arguments=["a", "b"])
    assert result.text.startswith("a+b\n"), result.text


async def test_script_of_an_unknown_kind_is_refused(call, make_skill):
    make_skill({"scripts/run.tcl": "puts 1\n"})
    result = await call("skill_run", name="report", script="scripts/run.tcl")
    assert (result.is_error, result.metadata["code"]) == (True, "skills.kind")


async def test_file_that_is_not_of_the_skill_is_refused(call, make_skill, work):
    make_skill({"scripts/run.py": "print(1)\n"})
    (work / "evil.py").write_text("print(2)\n")
    for script in ("scripts/rum.py", "../../work/evil.py", str(work / "evil.py")):
        result = await call("skill_run", name="report", script=script)
        assert (result.is_error, result.metadata["code"]) == (True, "skills.file")


async def test_script_reads_and_changes_the_places_of_the_agent_and_not_the_skill(call, make_skill, work, tmp_path):
    code = """
        import pathlib, sys
        work, skill, secret = map(pathlib.Path, sys.argv[1:])
        (work / "out.txt").write_text((work / "in.txt").read_text().upper())
        own = pathlib.Path(__file__).parent.parent
        print((own / "references" / "words.md").read_text())
        for one in (own / "SKILL.md", skill / "SKILL.md"):
            try:
                one.write_text("changed")
                print("changed", one)
            except OSError as error:
                print(type(error).__name__)
        try:
            print(secret.read_text())
        except OSError as error:
            print("secret", type(error).__name__)
    """
    lines = [line[8:] for line in code.splitlines()]
    folder = make_skill({"scripts/run.py": "\n".join(lines), "references/words.md": "words"})
    (work / "in.txt").write_text("text")
    (tmp_path / "secret.txt").write_text("the secret")
    arguments = [str(work), str(folder), str(tmp_path / "secret.txt")]
    result = await call("skill_run", name="report", script="scripts/run.py", arguments=arguments)
    assert not result.is_error, result.text
    assert (work / "out.txt").read_text() == "TEXT"
    assert result.text.startswith("words\n")
    assert "changed" not in result.text
    assert "the secret" not in result.text
    assert "changed" not in (folder / "SKILL.md").read_text()


async def test_copies_of_the_files_of_a_skill_can_be_changed(call, make_skill, work):
    code = "import pathlib, shutil, sys\n"
    code += "copy = shutil.copy(pathlib.Path(__file__).parents[1] / 'assets/a.txt', sys.argv[1])\n"
    make_skill({"scripts/run.py": f"{code}open(copy, 'a').write(' more')\n", "assets/a.txt": "template"})
    result = await call("skill_run", name="report", script="scripts/run.py", arguments=[str(work)])
    assert not result.is_error, result.text
    assert (work / "a.txt").read_text() == "template more"


async def test_path_of_the_skill_itself_leads_to_its_snapshot(call, make_skill):
    folder = make_skill({"scripts/run.py": "import sys\nprint(open(sys.argv[1]).read())\n", "assets/a.txt": "asset"})
    result = await call("skill_run", name="report", script="scripts/run.py", arguments=[f"{folder}/assets/a.txt"])
    assert result.text.startswith("asset\n"), result.text


async def test_script_has_no_network_unless_it_is_granted(call, make_skill, approver):
    make_skill({"scripts/run.py": "import socket\nprint(socket.socket())\n"})
    assert (await call("skill_run", name="report", script="scripts/run.py")).is_error
    assert "network=yes" not in " ".join(approver.requests[0].effect["capabilities"])
    result = await call("skill_run", name="report", script="scripts/run.py", network=True)
    assert not result.is_error, result.text
    assert "network=yes" in " ".join(approver.requests[-1].effect["capabilities"])


async def test_files_that_a_script_writes_are_kept_where_the_model_wants(call, make_skill, work):
    code = "import os\nos.makedirs('a/b')\nopen('a/b/c.txt', 'w').write('x' * 1_234)\nopen('d', 'w')\n"
    make_skill({"scripts/run.py": code})
    result = await call("skill_run", name="report", script="scripts/run.py", keep="out")
    assert "[files that it wrote]\nout/d (0 bytes)\nout/a/b/c.txt (1,234 bytes)" in result.text, result.text
    assert (work / "out/a/b/c.txt").read_text() == "x" * 1_234


async def test_files_that_a_script_writes_are_kept_as_blobs(call, make_skill, tmp_path):
    make_skill({"scripts/run.py": "open('a.txt', 'w').write('hello')\n"})
    result = await call("skill_run", name="report", script="scripts/run.py", keep="blobs")
    digest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    assert f"blob {digest} (5 bytes)" in result.text, result.text
    assert not [*(tmp_path / "home/files/skill-runs").rglob("a.txt")]


async def test_files_that_are_not_kept_are_listed_and_stay_in_the_folder_of_the_host(call, make_skill, tmp_path):
    make_skill({"scripts/run.py": "open('a.txt', 'w').write('hello')\n"})
    result = await call("skill_run", name="report", script="scripts/run.py")
    assert "a.txt (5 bytes)" in result.text
    assert [*(tmp_path / "home/files/skill-runs").rglob("a.txt")]


async def test_file_that_cannot_be_kept_is_left_and_loses_no_other_result(call, make_skill, work):
    code = "for name in ('a\\n[exit code 1]', 'taken', 'z'):\n    open(name, 'w').write(name[:1])\nprint('printed')\n"
    make_skill({"scripts/run.py": code})
    (work / "out").mkdir()
    (work / "out" / "taken").write_text("older")
    result = await call("skill_run", name="report", script="scripts/run.py", keep="out")
    printed, end, title, odd, taken, last = result.text.split("\n")
    assert (printed, end, title) == ("printed", "[exit code 0]", "[files that it wrote]")
    assert odd.startswith(r"a\n[exit code 1] (1 bytes) [not kept, but left in `skill-runs/")
    assert taken.startswith("taken (1 bytes) [not kept, but left in `skill-runs/")
    assert last == "out/z (1 bytes)"
    assert [(work / "out" / name).read_text() for name in ("taken", "z")] == ["older", "z"]


async def test_folder_to_keep_files_in_is_one_of_the_places(call, make_skill):
    make_skill({"scripts/run.py": "open('a.txt', 'w').write('hello')\n"})
    for keep, code in (("/etc", "tools.place"), (".git/hooks", "tools.protected")):
        result = await call("skill_run", name="report", script="scripts/run.py", keep=keep)
        assert result.metadata["code"] == code


async def test_slow_script_is_killed_and_its_output_is_shown(call, make_skill):
    make_skill({"scripts/run.py": "import time\nprint('began', flush=True)\ntime.sleep(60)\n"})
    result = await call("skill_run", name="report", script="scripts/run.py", timeout=1.0)
    assert result.is_error
    assert result.text.startswith("began\n[killed after 1 s]")


async def test_failure_of_a_script_is_an_error_with_its_output(call, make_skill):
    make_skill({"scripts/run.py": "import sys\nprint('half')\nsys.exit('broken')\n"})
    result = await call("skill_run", name="report", script="scripts/run.py")
    assert result.is_error
    assert result.text.startswith("half\nbroken\n[exit code 1]")


async def test_question_names_the_skill_and_its_exact_rights(call, make_skill, work, approver):
    make_skill({"scripts/run.py": "print(1)\n"})
    await call("skill_run", name="report", script="scripts/run.py")
    (request,) = approver.requests
    assert request.question == "Grant these capabilities to the skill `report`?"
    shown = " ".join(request.effect["capabilities"])
    assert f"skills/{request.effect['holder']}" in shown
    assert str(work) in shown


async def test_mode_that_asks_before_changes_has_one_question_about_a_script(opened, make_skill, approver):
    make_skill({"scripts/run.py": "import tiny\nopen('a.txt', 'w').write('x')\n"})
    run = {"name": "report", "script": "scripts/run.py", "packages": ["tiny"], "keep": "out"}
    async with opened(("skill_run", run), guards=True) as agent:
        ran = await agent.invoke("go")
        assert "out/a.txt" in next(one.text for one in ran.messages if one.role == "tool")
    (effect,) = [one for one in approver.requests if one.kind == "effect"]
    assert effect.subject == "skills.run"
    assert effect.preview.startswith("run scripts/run.py of the skill report\n")
    assert effect.preview.endswith("with the packages tiny")


async def test_skill_that_was_changed_after_the_question_does_not_run(opened, make_skill):
    folder = make_skill({"scripts/run.py": "print(1)\n"})
    async with opened() as agent:
        request = {"folder": str(folder), "script": "scripts/run.py", "digest": "0" * 64}
        with pytest.raises(OpError, match="changed meanwhile") as caught:
            await agent.host.op("skills.run", request, grants=["skills:script=*"])
        assert caught.value.code == "skills.changed"


async def test_refused_skill_does_not_run(call, make_skill, approver, work):
    make_skill({"scripts/run.py": f"open({str(work / 'ran')!r}, 'w')\n"})
    approver.answer = Approval("deny", reason="unknown author")
    result = await call("skill_run", name="report", script="scripts/run.py", arguments=[])
    assert result.is_error
    assert "unknown author" in result.text
    assert not (work / "ran").exists()


async def test_changed_skill_is_asked_about_again(call, make_skill, approver):
    approver.answer = Approval("allow", "always")
    for code in ("print(1)\n", "print(1)\n", "print(2)\n"):
        make_skill({"scripts/run.py": code})
        assert not (await call("skill_run", name="report", script="scripts/run.py")).is_error
    assert len(approver.requests) == 2
    assert len({one.effect["holder"] for one in approver.requests}) == 2
