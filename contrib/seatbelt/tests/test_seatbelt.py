"""What of the sandbox of macOS can be tested without macOS: the profile's text, and that nothing is claimed wrongly."""

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
    """The lists, words and strings of a profile, by the rules of Scheme."""
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
    """What a profile says about an action: kind and value of each filter."""
    found = [rule for rule in parse(profile) if rule[0] == action.split()[0] and action.split()[1] in rule]
    return [(kind, value) for rule in found for kind, (_, value) in [each for each in rule if type(each) is tuple]]


@given(names=st.lists(NAMES, min_size=1, max_size=3))
def test_no_path_breaks_out_of_its_string(names):
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
def test_a_hostile_name_is_a_name(name):
    profile = seatbelt_profile(PYTHON, [Path("/skills", name)])
    assert ("subpath", str(Path("/skills", name))) in rules(profile, "allow file-read*")
    assert not [rule for rule in parse(profile) if rule[:2] == ("allow", "default")]


@pytest.mark.parametrize("name", ["a\nb", "a\0b", "a\x1b[0m", "a\udcff", "a\u2028b", "x" * 1024])
def test_what_could_be_read_in_two_ways_is_refused(name):
    with pytest.raises(ValueError, match=r"can't be written|embedded null"):
        seatbelt_profile(SeatbeltInterpreter((f"/bin/{name}",), ()), [])


def test_everything_is_denied_that_is_not_allowed():
    profile = parse(seatbelt_profile(PYTHON, [Path("/skills/one")]))
    assert profile[:2] == [("version", "1"), ("deny", "default")]
    allowed = {word for rule in profile if rule[0] == "allow" for word in rule[1:] if type(word) is str}
    assert allowed == {
        "process-exec*", "process-info*", "signal", "sysctl-read", "file-read*", "file-read-metadata",
        "file-map-executable",
    }  # fmt: skip


def test_no_rule_is_about_everything():
    for interpreter in (PYTHON, SeatbeltInterpreter(("/bin/python",), ())):
        for rule in parse(seatbelt_profile(interpreter, []))[2:]:
            assert any(type(part) is tuple for part in rule), rule


def test_signals_and_facts_are_about_itself_only():
    profile = parse(seatbelt_profile(PYTHON, []))
    assert ("allow", "signal", ("target", "self")) in profile
    assert ("allow", "process-info*", ("target", "self")) in profile


def test_only_the_interpreter_can_be_started():
    assert rules(seatbelt_profile(PYTHON, [Path("/skills/one")]), "allow process-exec*") == [
        ("literal", "/opt/python/bin/python3")
    ]


def test_arguments_and_environments_of_others_are_no_system_value_to_read():
    values = rules(seatbelt_profile(PYTHON, []), "allow sysctl-read")
    assert values
    assert not [value for _, value in values if value.startswith("kern.proc")]


def test_the_machines_packages_are_denied_and_the_skills_own_allowed_after_that():
    own = Path("/opt/python/lib/python3.13/site-packages/own")
    profile = parse(seatbelt_profile(PYTHON, [own]))
    (denied,) = [index for index, rule in enumerate(profile) if rule[0] == "deny" and rule[1] != "default"]
    assert ("subpath", ("string", "/opt/python/lib/python3.13/site-packages")) in profile[denied]
    assert profile[denied + 1 :] == [("allow", "file-read*", "file-map-executable", ("subpath", ("string", str(own))))]


def test_links_are_followed_because_the_kernel_sees_where_they_lead(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    profile = seatbelt_profile(PYTHON, [tmp_path / "link"])
    allowed = rules(profile, "allow file-read*")
    assert ("subpath", str((tmp_path / "real").resolve())) in allowed
    assert ("subpath", str(tmp_path / "link")) not in allowed


def test_the_wrapper_names_its_program_by_path():
    assert seatbelt_wrapper("(version 1)") == ("/usr/bin/sandbox-exec", "-p", "(version 1)")


def stand_in(folder, script):
    program = folder / "sandbox-exec"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


@pytest.mark.anyio
async def test_a_sandbox_that_holds_nothing_is_not_claimed(tmp_path):
    """Here it only drops the profile; each attempt that exists on this system then has to succeed."""
    probe, interpreter = await prove_seatbelt(
        Path(sys.executable), sandbox_exec=stand_in(tmp_path, 'shift 2; exec "$@"')
    )
    assert (probe.isolation, interpreter) == (Isolation.NONE, None)
    for attempt in (
        "read a file outside its folders", "list the folder above its own", "write in its own folder",
        "change a file of its own folder", "change the mode of a file", "remove a file", "write where everybody may",
        "connect to a server of the host", "connect to a unix socket of the host", "send a datagram", "fork",
        "start a program", "signal the host",
    ):  # fmt: skip
        assert attempt in probe.hints[0]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("script", "hint"),
    [
        ("echo no such profile >&2; exit 65", "no such profile"),
        ("exit 71", "code 71"),
        ("echo '{'", "sandbox-exec"),
    ],
)
async def test_a_sandbox_that_does_not_start_is_not_claimed(tmp_path, script, hint):
    probe, interpreter = await prove_seatbelt(Path(sys.executable), sandbox_exec=stand_in(tmp_path, script))
    assert (probe.isolation, interpreter) == (Isolation.NONE, None)
    assert hint in probe.hints[0]


def report(must_fail, must_work="null"):
    return f"""echo '{{"must_fail": {{"fly": {must_fail}, "dive": "no"}}, "must_work": {{"walk": {must_work}}}}}'"""


@pytest.mark.anyio
async def test_the_tier_is_claimed_only_if_every_attempt_failed_and_ordinary_work_did_not(tmp_path):
    python = Path(sys.executable)
    probe, interpreter = await prove_seatbelt(python, sandbox_exec=stand_in(tmp_path, report('"no"')))
    assert probe.isolation is Isolation.SEATBELT_UNTESTED
    assert probe.proofs == ("could not fly", "could not dive")
    assert "ever tested on macOS" in probe.gaps[0]
    assert interpreter.programs[0] == sys.executable
    for script, hint in (
        (report("null"), "a worker could fly"),
        (report('"no"', '"lame"'), "a worker could not walk (lame)"),
    ):
        probe, interpreter = await prove_seatbelt(python, sandbox_exec=stand_in(tmp_path, script))
        assert (probe.isolation, interpreter) == (Isolation.NONE, None)
        assert hint in probe.hints[0]


@pytest.mark.anyio
async def test_a_system_without_it_has_no_such_tier(tmp_path):
    probe, _ = await prove_seatbelt(Path(sys.executable), sandbox_exec=tmp_path / "missing")
    assert probe.isolation is Isolation.NONE


@pytest.mark.anyio
async def test_an_interpreter_that_does_not_run_is_no_tier(tmp_path):
    probe, _ = await prove_seatbelt(tmp_path / "python")
    assert probe.isolation is Isolation.NONE


@pytest.mark.anyio
async def test_workers_start_under_the_profile_that_was_proved(tmp_path, request_for_worker):
    """The stand-in tells a proof where it is asked for one, and keeps the profile of what it starts."""
    said = report('"no"')
    start = f'echo "$2" > {tmp_path}/profile; shift 2; exec "$@"'
    script = f'case "$*" in *_attempts.py*) {said} ;; *) {start} ;; esac'
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
async def test_where_nothing_was_proved_workers_start_without_a_tier(tmp_path, request_for_worker):
    worker = await SeatbeltSandbox(tmp_path / "missing").launch(request_for_worker)
    assert worker.isolation is Isolation.NONE
    await worker.close()


def test_the_entry_point_gives_one_sandbox():
    assert [sandbox.name for sandbox in sideband_sandboxes()] == ["seatbelt"]


@pytest.mark.anyio
@pytest.mark.parametrize(("system", "hints"), [("linux", 0), ("darwin", 1)])
async def test_only_macos_is_told_what_is_missing(tmp_path, monkeypatch, system, hints):
    monkeypatch.setattr(sys, "platform", system)
    probe = await SeatbeltSandbox(tmp_path / "missing").probe()
    assert (probe.isolation, len(probe.hints)) == (Isolation.NONE, hints)
