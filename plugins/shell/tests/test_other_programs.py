"""Programs that run other programs: they need a grant with `runs=any`."""

import os
import shutil
import subprocess

import pytest
from sideband import CallRequest, Host
from sideband.ops import OpDenied
from sideband_cli._terminal._questions import Questions, TypedAnswer
from sideband_shell import ShellDenied
from sideband_shell._programs import find_program

pytestmark = pytest.mark.anyio

MARK = "ran another program"
GIT = ["-c", f"alias.x=!echo {MARK}", "x"]
COMMANDS = {
    "an alias of git": ("git", GIT),
    "git by its path": (os.path.realpath("/usr/bin/git"), GIT),
    "find": ("find", ["/etc/passwd", "-exec", "echo", MARK, ";"]),
    "tar": ("tar", ["--to-command", f"echo {MARK}", "-xf", "archive.tar"]),
    "a checkpoint of tar": (
        "tar",
        ["--checkpoint=1", f"--checkpoint-action=exec=echo {MARK}", "-cf", "/dev/null", "known"],
    ),
    "sed": ("sed", [f"1e echo {MARK}", "known"]),
    "split": ("split", ["--filter", f"echo {MARK}", "known"]),
    "env": ("env", ["echo", MARK]),
    "an interpreter": ("perl", ["-e", f"exec 'echo', '{MARK}'"]),
    "a shell": ("sh", ["-c", f"echo {MARK}"]),
}


@pytest.fixture
def repository(place):
    subprocess.run(["tar", "-cf", "archive.tar", "known"], cwd=place, check=True)
    return place


@pytest.mark.parametrize("command", COMMANDS)
async def test_program_that_runs_others_needs_a_grant_for_that(run, repository, command):
    binary, arguments = COMMANDS[command]
    granted = f"shell:binary={binary},place={repository}"
    with pytest.raises(OpDenied, match="runs=any"):
        await run(binary, *arguments, cwd=str(repository), grants=[granted])
    answer = await run(binary, *arguments, cwd=str(repository), grants=[f"{granted},runs=any"])
    assert MARK in answer["stdout"], answer


async def test_grant_without_names_covers_programs_that_run_others_only_if_it_names_them(run):
    assert (await run("true", grants=["shell"]))["exit_code"] == 0
    with pytest.raises(OpDenied, match="runs=any"):
        await run("git", "--version", grants=["shell"])
    assert (await run("git", "--version", grants=["shell:runs=any"]))["exit_code"] == 0
    with pytest.raises(OpDenied, match="code=yes"):
        await run("sh", "-c", "true", grants=["shell:runs=any"])


SKILL = "from sideband.skill import tool\n\n@tool\nasync def nothing() -> None:\n    pass\n"


OTHERS = "these programs can run any other program, in the same isolation"
SERVICES = "can use every service that listens at a socket in their places"
REMARKS = {
    "runs=any": OTHERS,
    "runs=none|any": OTHERS,
    "runs=a*": OTHERS,
    "runs=*": OTHERS,
    "runs=none": "",
    "code=yes": "",
    "sockets=yes": f"these programs {SERVICES}",
    "sockets=no|y*": f"these programs {SERVICES}",
    "sockets=no": "",
    "runs=any,sockets=yes": f"{OTHERS}, and {SERVICES}",
}


@pytest.mark.parametrize("fields", REMARKS)
async def test_question_for_a_grant_says_what_its_programs_can_reach(home, tmp_path, fields):
    folder = tmp_path / "skills" / "worker"
    folder.mkdir(parents=True)
    front = f"name: worker\ndescription: Works.\nmetadata:\n  sideband.capabilities: shell:binary=git,{fields}\n"
    (folder / "SKILL.md").write_text(f"---\n{front}---\n")
    (folder / "worker.py").write_text(SKILL)
    shown = []

    async def ask(reason, question, keys):
        shown.append("\n".join(reason))
        return TypedAnswer("y")

    async with Host(home=home, skill_dirs=[tmp_path / "skills"], approver=Questions(ask).approver()) as host:
        await host.run(CallRequest("worker.nothing", {}))
    _, _, remark = next(line for line in shown[0].splitlines() if "binary=git" in line).partition(" (these")
    assert remark == (REMARKS[fields] and f"{REMARKS[fields]})").removeprefix("these")
    assert "shell:binary=git" in shown[0]


async def test_link_to_a_program_that_runs_others_does_not_bypass_the_grant(tmp_path):
    if os.geteuid() == 0:
        tmp_path.chmod(0o755)
        (tmp_path / "harmless").symlink_to("/usr/bin/find")
        with pytest.raises(ShellDenied, match="runs other programs") as caught:
            find_program("harmless", [str(tmp_path)], tmp_path / "home")
        assert "/usr/bin/find" in caught.value.hint


@pytest.fixture
def renamed(tmp_path):
    """Return the path of a copy of `find` whose name does not reveal what it can do."""
    program = tmp_path.resolve() / "lister"
    shutil.copy("/usr/bin/find", program)
    return str(program)


async def test_unknown_program_runs_others_only_if_the_grant_allows_it(run, renamed):
    command = (renamed, "/etc/passwd", "-exec", "echo", MARK, ";")
    for grants in ([f"shell:binary={renamed}"], ["shell"]):
        answer = await run(*command, grants=grants)
        assert (MARK in answer["stdout"], "Function not implemented" in answer["stderr"]) == (False, True)
    assert MARK in (await run(*command, grants=[f"shell:binary={renamed},runs=any"]))["stdout"]


async def test_grant_for_others_in_one_place_does_not_apply_to_another(run, renamed, place, tmp_path):
    grants = [f"shell:binary={renamed},runs=any,place=/none", f"shell:binary={renamed},place={place}"]
    answer = await run(renamed, "/etc/passwd", "-exec", "echo", MARK, ";", read=[str(place)], grants=grants)
    assert MARK not in answer["stdout"]
