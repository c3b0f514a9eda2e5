"""The parts of the macOS sandbox that can be tested elsewhere: the text of profiles, and the verification."""

import shlex
import sys
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.workers import Isolation
from sideband_seatbelt import SeatbeltSandbox
from sideband_seatbelt._probe import prove_seatbelt
from sideband_seatbelt._profile import SeatbeltInterpreter, seatbelt_profile, seatbelt_wrapper
from sideband_seatbelt.plugin import sideband_sandboxes

PYTHON = SeatbeltInterpreter(
    programs=("/opt/python/bin/python3",), folders=("/opt/python/lib/python3.13",), files=("/opt/ssl/libssl.dylib",)
)
CHARACTERS = st.one_of(st.sampled_from("\"\\() ;#'`,@|\n\t\r\0"), st.characters())
NAMES = st.text(CHARACTERS.filter(lambda character: character != "/"), min_size=1, max_size=20).filter(
    lambda name: name not in {".", ".."}
)


def parse(profile):
    """Parse the lists, words and strings of a profile by the rules of Scheme."""
    stack, at = [[]], 0
    while at < len(profile):
        character = profile[at]
        at += 1
        if character == "(":
            stack.append([])
        elif character == ")":
            done = stack.pop()
            stack[-1].append(tuple(done))
        elif character == ";":
            at = profile.index("\n", at)
        elif character == '"':
            text = ""
            while profile[at] != '"':
                at += profile[at] == "\\"
                text += profile[at]
                at += 1
            at += 1
            stack[-1].append(("string", text))
        elif not character.isspace():
            start = at - 1
            while profile[at] not in '() \n\t";':
                at += 1
            stack[-1].append(profile[start:at])
    assert len(stack) == 1, "the parentheses do not match"
    return stack[0]


def rules(profile, action):
    """Return the kind and value of each filter in the rules for an action."""
    found = [rule for rule in parse(profile) if rule[0] == action.split()[0] and action.split()[1] in rule]
    return [(kind, value) for rule in found for kind, (_, value) in [each for each in rule if type(each) is tuple]]


@given(names=st.lists(NAMES, min_size=1, max_size=3))
def test_path_cannot_escape_its_quotes(names):
    folder = Path("/skills", *names)
    try:
        profile = seatbelt_profile(PYTHON, [folder])
    except ValueError:
        assert not str(folder).isprintable()
        return
    plain = parse(seatbelt_profile(PYTHON, [Path("/skills", *("x" * len(names)))]))
    odd = parse(profile)
    assert odd[-1][-1] == ("subpath", ("string", str(folder)))
    assert [rule[:2] for rule in odd] == [rule[:2] for rule in plain]
    assert [len(rule) for rule in odd] == [len(rule) for rule in plain]


@pytest.mark.parametrize(
    "name", ['") (allow default) ("', '\\") (allow default)', "; comment", 'x" (subpath "/', "\\\\", '\\"', "ü∂ 日本"]
)
def test_special_characters_in_names_are_quoted(name):
    profile = seatbelt_profile(PYTHON, [Path("/skills", name)])
    assert ("subpath", str(Path("/skills", name))) in rules(profile, "allow file-read*")
    assert not [rule for rule in parse(profile) if rule[:2] == ("allow", "default")]


@pytest.mark.parametrize("name", ["a\nb", "a\0b", "a\x1b[0m", "a\udcff", "a\u2028b", "x" * 1024])
def test_ambiguous_path_is_rejected(name):
    with pytest.raises(ValueError, match=r"cannot quote|embedded null"):
        seatbelt_profile(SeatbeltInterpreter((f"/bin/{name}",), ()), [])


def test_profile_denies_by_default():
    profile = parse(seatbelt_profile(PYTHON, [Path("/skills/one")]))
    assert profile[:2] == [("version", "1"), ("deny", "default")]
    allowed = {word for rule in profile if rule[0] == "allow" for word in rule[1:] if type(word) is str}
    assert allowed == {
        "process-exec*", "process-info*", "signal", "sysctl-read", "file-read*", "file-read-metadata",
        "file-map-executable",
    }  # fmt: skip


def test_every_rule_has_a_filter():
    for interpreter in (PYTHON, SeatbeltInterpreter(("/bin/python",), ())):
        for rule in parse(seatbelt_profile(interpreter, []))[2:]:
            assert any(type(part) is tuple for part in rule), rule


def test_signals_and_process_info_are_limited_to_self():
    profile = parse(seatbelt_profile(PYTHON, []))
    assert ("allow", "signal", ("target", "self")) in profile
    assert ("allow", "process-info*", ("target", "self")) in profile


def test_only_the_interpreter_can_be_executed():
    assert rules(seatbelt_profile(PYTHON, [Path("/skills/one")]), "allow process-exec*") == [
        ("literal", "/opt/python/bin/python3")
    ]


def test_process_arguments_are_not_readable_by_sysctl():
    values = rules(seatbelt_profile(PYTHON, []), "allow sysctl-read")
    assert values
    assert not [value for _, value in values if value.startswith("kern.proc")]


def test_own_packages_are_allowed_after_site_packages_are_denied():
    own = Path("/opt/python/lib/python3.13/site-packages/own")
    profile = parse(seatbelt_profile(PYTHON, [own]))
    (denied,) = [index for index, rule in enumerate(profile) if rule[0] == "deny" and rule[1] != "default"]
    assert ("subpath", ("string", "/opt/python/lib/python3.13/site-packages")) in profile[denied]
    assert profile[denied + 1 :] == [("allow", "file-read*", "file-map-executable", ("subpath", ("string", str(own))))]


def test_symbolic_links_are_resolved(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    profile = seatbelt_profile(PYTHON, [tmp_path / "link"])
    allowed = rules(profile, "allow file-read*")
    assert ("subpath", str((tmp_path / "real").resolve())) in allowed
    assert ("subpath", str(tmp_path / "link")) not in allowed


def test_wrapper_runs_sandbox_exec_by_absolute_path():
    assert seatbelt_wrapper("(version 1)") == ("/usr/bin/sandbox-exec", "-p", "(version 1)")


def stand_in(folder, script):
    program = folder / "sandbox-exec"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


@pytest.mark.anyio
async def test_sandbox_exec_that_ignores_the_profile_has_no_tier(tmp_path):
    """The stand-in ignores the profile, so all attempts that are possible on this system succeed."""
    probe, interpreter = await prove_seatbelt(
        Path(sys.executable), sandbox_exec=stand_in(tmp_path, 'shift 2; exec "$@"')
    )
    assert (probe.isolation, interpreter) == (Isolation.NONE, None)
    for attempt in (
        "read a file outside its folders", "list the parent of its own folder", "write to its own folder",
        "change a file of its own folder", "change the mode of a file", "remove a file",
        "write to a world-writable folder", "connect to a server of the host", "connect to a unix socket of the host",
        "send a datagram", "fork", "start a program", "signal the host",
    ):  # fmt: skip
        assert attempt in probe.hints[0]


@pytest.mark.anyio
async def test_leftovers_that_another_host_removes_do_not_include_the_probe(tmp_path):
    removal = "import tempfile, pathlib, sideband.state as state\n"
    removal += "state.remove_temporary_folders(pathlib.Path(tempfile.gettempdir()), 'sideband-probe-')"
    script = f'{shlex.join([sys.executable, "-c", removal])}; shift 2; exec "$@"'
    probe, _ = await prove_seatbelt(Path(sys.executable), sandbox_exec=stand_in(tmp_path, script))
    assert "write to its own folder" in probe.hints[0]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("script", "hint"),
    [
        ("echo no such profile >&2; exit 65", "no such profile"),
        ("exit 71", "code 71"),
        ("echo '{'", "sandbox-exec"),
    ],
)
async def test_failing_sandbox_exec_has_no_tier(tmp_path, script, hint):
    probe, interpreter = await prove_seatbelt(Path(sys.executable), sandbox_exec=stand_in(tmp_path, script))
    assert (probe.isolation, interpreter) == (Isolation.NONE, None)
    assert hint in probe.hints[0]


def report(must_fail, must_work="null"):
    return f"""echo '{{"must_fail": {{"fly": {must_fail}, "dive": "no"}}, "must_work": {{"walk": {must_work}}}}}'"""


@pytest.mark.anyio
async def test_tier_requires_failed_attempts_and_working_ordinary_code(tmp_path):
    python = Path(sys.executable)
    probe, interpreter = await prove_seatbelt(python, sandbox_exec=stand_in(tmp_path, report('"no"')))
    assert probe.isolation is Isolation.SEATBELT_UNTESTED
    assert probe.proofs == ("could not fly", "could not dive")
    assert "never tested on macOS" in probe.gaps[0]
    assert interpreter.programs[0] == sys.executable
    for script, hint in (
        (report("null"), "a worker could fly"),
        (report('"no"', '"lame"'), "a worker could not walk (lame)"),
    ):
        probe, interpreter = await prove_seatbelt(python, sandbox_exec=stand_in(tmp_path, script))
        assert (probe.isolation, interpreter) == (Isolation.NONE, None)
        assert hint in probe.hints[0]


@pytest.mark.anyio
async def test_missing_sandbox_exec_has_no_tier(tmp_path):
    probe, _ = await prove_seatbelt(Path(sys.executable), sandbox_exec=tmp_path / "missing")
    assert probe.isolation is Isolation.NONE


@pytest.mark.anyio
async def test_missing_interpreter_has_no_tier(tmp_path):
    probe, _ = await prove_seatbelt(tmp_path / "python")
    assert probe.isolation is Isolation.NONE


@pytest.mark.anyio
async def test_worker_starts_under_its_profile(tmp_path, request_for_worker):
    """The stand-in prints a report for the probe worker, and saves the profile of other workers."""
    start = f'echo "$2" > {tmp_path}/profile; shift 2; exec "$@"'
    script = f"""case "$*" in *_attempts.py*) {report('"no"')} ;; *) {start} ;; esac"""
    sandbox = SeatbeltSandbox(stand_in(tmp_path, script))
    assert (await sandbox.probe()).isolation is Isolation.SEATBELT_UNTESTED
    worker = await sandbox.launch(request_for_worker)
    try:
        assert worker.isolation is Isolation.SEATBELT_UNTESTED
        worker.channel.send(b'{"__type__": "hello", "version": 1}\n')
        await anyio.wait_readable(worker.channel)
        assert b"ready" in worker.channel.recv(65536)
    finally:
        await worker.close()
        await sandbox.close()
    assert str(request_for_worker.snapshot) in (tmp_path / "profile").read_text()


@pytest.mark.anyio
async def test_worker_starts_without_isolation_if_no_tier_was_verified(tmp_path, request_for_worker):
    worker = await SeatbeltSandbox(tmp_path / "missing").launch(request_for_worker)
    assert worker.isolation is Isolation.NONE
    await worker.close()


def test_entry_point_returns_one_sandbox():
    assert [sandbox.name for sandbox in sideband_sandboxes()] == ["seatbelt"]


@pytest.mark.anyio
@pytest.mark.parametrize(("system", "hints"), [("linux", 0), ("darwin", 1)])
async def test_missing_sandbox_exec_is_a_hint_only_on_macos(tmp_path, monkeypatch, system, hints):
    monkeypatch.setattr(sys, "platform", system)
    probe = await SeatbeltSandbox(tmp_path / "missing").probe()
    assert (probe.isolation, len(probe.hints)) == (Isolation.NONE, hints)
