"""Seccomp filters, executed by an interpreter of classic BPF that is independent of the assembler."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband_sandbox._machine._seccomp import ALLOW, KILL, NOTIFY, OWN_PID, Check, Rule, assemble, refuse
from sideband_sandbox._machine._tables import AARCH64, ARCHITECTURES, X86_64
from sideband_sandbox._programs._filter import NUMBERS, execution_filter, program_filter
from sideband_sandbox._workers._filter import worker_filter

DEFAULT = refuse(1)
WORD = st.one_of(st.sampled_from([0, 1, 2, 0x40000000, 0xFFFFFFFF]), st.integers(0, 0xFFFFFFFF))
ARGUMENT = st.one_of(
    st.integers(0, 8), st.sampled_from([1 << 32, 1 << 63, (1 << 64) - 1]), st.integers(0, (1 << 64) - 1)
)
ARGUMENTS = st.lists(ARGUMENT, min_size=6, max_size=6)


def execute(code, audit, number, arguments, *, own_pid_at=(), pid=0):
    """Run classic BPF on a ``seccomp_data``, following the kernel's documentation of the instructions."""
    data = struct.pack("=IIQ6Q", number, audit, 0, *arguments)
    program = [struct.unpack_from("=HBBI", code, offset) for offset in range(0, len(code), 8)]
    for index in own_pid_at:
        program[index] = (*program[index][:3], pid)
    accumulator, at = 0, 0
    while True:
        operation, if_true, if_false, operand = program[at]
        at += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, operand)
            case 0x54:
                accumulator &= operand
            case 0x15:
                at += if_true if accumulator == operand else if_false
            case 0x35:
                at += if_true if accumulator >= operand else if_false
            case 0x06:
                return operand
            case _:
                raise AssertionError(f"unexpected instruction {operation:#x}")


def holds(check, arguments, pid):
    value = pid if check.value == OWN_PID else check.value
    word = arguments[check.argument]
    return (word & 0xFFFFFFFF & check.mask) == value and not (check.wide and word >> 32)


def expected(architecture, rules, call, pid):
    audit, number, arguments = call
    if audit != architecture.audit or (architecture.foreign_from and number >= architecture.foreign_from):
        return KILL
    for rule in rules:
        if rule.number == number:
            if not rule.any_of or any(all(holds(check, arguments, pid) for check in group) for group in rule.any_of):
                return rule.verdict
            return DEFAULT
    return DEFAULT


MASK = st.sampled_from([0xFFFFFFFF, 0xFF, 0xFFFFFFFE, 0x80000000])
CHECK = st.builds(
    Check,
    argument=st.integers(0, 5),
    value=st.one_of(st.integers(0, 8), st.just(OWN_PID)),
    mask=MASK,
    wide=st.booleans(),
)
GROUPS = st.lists(st.lists(CHECK, min_size=1, max_size=3).map(tuple), max_size=3).map(tuple)
RULES = st.lists(
    st.builds(Rule, number=st.integers(0, 20), verdict=st.sampled_from([ALLOW, refuse(38)]), any_of=GROUPS),
    max_size=12,
    unique_by=lambda rule: rule.number,
)


@given(RULES, st.sampled_from([X86_64, AARCH64]), WORD | st.integers(0, 25), ARGUMENTS, st.data())
def test_filter_returns_the_verdict_of_its_rules(rules, architecture, number, arguments, data):
    pid = data.draw(st.integers(2, 8))
    audit = data.draw(st.one_of(st.just(architecture.audit), WORD))
    program = assemble(architecture, rules, DEFAULT)
    verdict = execute(program.code, audit, number, arguments, own_pid_at=program.own_pid_at, pid=pid)
    assert verdict == expected(architecture, rules, (audit, number, arguments), pid)


def test_two_rules_for_one_call_are_rejected():
    with pytest.raises(ValueError, match="duplicate rule"):
        assemble(X86_64, [Rule(1), Rule(1)], DEFAULT)


def test_rule_too_long_for_a_jump_is_rejected():
    with pytest.raises(ValueError, match="too long"):
        assemble(X86_64, [Rule(1, ALLOW, tuple((Check(0, value),) for value in range(200)))], DEFAULT)


@pytest.fixture(params=ARCHITECTURES.values(), ids=ARCHITECTURES)
def architecture(request):
    return request.param


def ask(architecture, name, *arguments, audit=None):
    program = worker_filter(architecture)
    filled = [*arguments, *[0] * (6 - len(arguments))]
    number = architecture.calls[name] if isinstance(name, str) else name
    audit = architecture.audit if audit is None else audit
    return execute(program.code, audit, number, filled, own_pid_at=program.own_pid_at, pid=4321)


@given(number=st.integers(0, 600), arguments=ARGUMENTS)
def test_unlisted_call_is_refused(number, arguments):
    for architecture in ARCHITECTURES.values():
        if number not in architecture.calls.values():
            assert ask(architecture, number, *arguments) == DEFAULT


@given(number=WORD, arguments=ARGUMENTS)
def test_call_of_another_architecture_kills(number, arguments):
    for architecture in ARCHITECTURES.values():
        for audit in (0, 0x40000003, 0x40000028, *(each.audit for each in ARCHITECTURES.values())):
            if audit != architecture.audit:
                assert ask(architecture, number, *arguments, audit=audit) == KILL


@given(number=st.integers(0x40000000, 0xFFFFFFFF))
def test_x32_call_kills(number):
    assert ask(X86_64, number) == KILL


@given(flags=ARGUMENT)
def test_clone_creates_only_threads(flags):
    for architecture in ARCHITECTURES.values():
        is_thread = flags & 0xFFFFFFFF in {0x3D0F00, 0x7D0F00}
        assert (ask(architecture, "clone", flags) == ALLOW) == is_thread


@pytest.mark.parametrize("added", [0x80, 0x11, 0x20000, 0x2000, 0x4000, 0x8000, 0x10000000, 0x20000000, 0x40000000])
def test_clone_with_an_additional_flag_is_refused(architecture, added):
    assert ask(architecture, "clone", 0x3D0F00 | added) == DEFAULT


@given(family=ARGUMENT, kind=ARGUMENT, protocol=ARGUMENT)
def test_socketpair_creates_only_stream_pairs(family, kind, protocol):
    allowed = ask(X86_64, "socketpair", family, kind, protocol) == ALLOW
    low = [each & 0xFFFFFFFF for each in (family, kind, protocol)]
    assert allowed == (low[0] == 1 and low[1] & ~0o2004000 == 1 and low[2] == 0)


@pytest.mark.parametrize("name", ["kill", "tgkill"])
def test_signals_reach_only_the_own_process(architecture, name):
    assert ask(architecture, name, 4321, 6) == ALLOW
    for other in (0, 1, 4320, (1 << 32) - 1, (1 << 64) - 1):
        assert ask(architecture, name, other, 6) == DEFAULT


def test_limits_can_be_read_but_not_set(architecture):
    assert ask(architecture, "prlimit64", 0, 7, 0, 0x1000) == ALLOW
    assert ask(architecture, "prlimit64", 4321, 7, 0, 0x1000) == DEFAULT
    assert ask(architecture, "prlimit64", 0, 7, 0x1000, 0) == DEFAULT
    assert ask(architecture, "prlimit64", 0, 7, 1 << 32, 0) == DEFAULT


def test_clone3_fails_with_enosys(architecture):
    assert ask(architecture, "clone3") == refuse(38)


@pytest.mark.parametrize(
    ("name", "position", "good"),
    [
        ("prctl", 0, {15, 16, 0x53564D41}),
        ("ioctl", 1, {0x5401, 0x541B, 0x5421, 0x5450, 0x5451}),
        ("fcntl", 1, {0, 1, 2, 3, 4, 1030}),
    ],
)
def test_multiplexed_calls_are_allowed_for_listed_operations(architecture, name, position, good):
    for value in {*good, *range(100), 0x5412, 0x5413, 1024, 1033}:
        arguments = [0, 0]
        arguments[position] = value
        assert (ask(architecture, name, *arguments) == ALLOW) == (value in good)


@given(flags=ARGUMENT)
def test_open_refuses_access_mode_3(flags):
    for architecture, name, arguments in (
        (X86_64, "open", (0, flags)),
        *((each, "openat", (0, 0, flags)) for each in ARCHITECTURES.values()),
    ):
        assert (ask(architecture, name, *arguments) == ALLOW) == (flags & 3 != 3)


@pytest.mark.parametrize(("name", "position"), [("sendto", 3), ("recvfrom", 3), ("sendmsg", 2), ("recvmsg", 2)])
def test_urgent_data_is_refused(architecture, name, position):
    for flags in (0, 1, 2, 3, 0x40, 0x41, 0x4000, 0x4001):
        arguments = [0] * position + [flags]
        assert (ask(architecture, name, *arguments) == ALLOW) == (not flags & 1)


def test_getsockopt_does_not_identify_the_peer(architecture):
    for name in range(100):
        assert (ask(architecture, "getsockopt", 3, 1, name) == ALLOW) == (name in {3, 4, 7, 8, 30, 38, 39})
        assert ask(architecture, "getsockopt", 3, 0, name) == DEFAULT


def test_tables_differ_only_in_legacy_calls():
    old = {"access", "dup2", "epoll_create", "epoll_wait", "getdents", "lstat", "open", "pause", "pipe", "poll",
           "readlink", "select", "stat", "time"}  # fmt: skip
    assert set(X86_64.calls) - set(AARCH64.calls) == old
    assert set(AARCH64.calls) <= set(X86_64.calls)


def test_numbers_are_unique(architecture):
    assert len(set(architecture.calls.values())) == len(architecture.calls)


def ask_program(architecture, name, *arguments, audit=None, network=False, own_sockets=False, own_ipc=False):
    program = program_filter(architecture, network=network, own_sockets=own_sockets, own_ipc=own_ipc)
    number = NUMBERS[architecture.machine][name] if isinstance(name, str) else name
    filled = [*arguments, *[0] * (6 - len(arguments))]
    return execute(program.code, architecture.audit if audit is None else audit, number, filled)


@given(mode=ARGUMENT | st.integers(0, 0o177777), garbage=ARGUMENT)
def test_program_sets_no_set_user_id_or_set_group_id_bit(mode, garbage):
    expected = refuse(1) if mode & 0o6000 else ALLOW
    for architecture in ARCHITECTURES.values():
        known = NUMBERS[architecture.machine]
        for name, at in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("fchmodat2", 2), ("creat", 1), ("mknod", 1)):
            if name in known:
                assert ask_program(architecture, name, *[garbage] * at, mode) == expected
        assert ask_program(architecture, "mknodat", garbage, garbage, mode, garbage) == expected
        assert ask_program(architecture, "openat2", garbage, garbage, mode, garbage) == refuse(38)


@given(flags=ARGUMENT | st.sampled_from([0o100, 0o101, 0o20200002, 0o20000000]), mode=st.integers(0, 0o177777))
def test_program_opens_existing_files_with_any_mode(flags, mode):
    creates = flags & (0o100 | 0o20000000)
    expected = refuse(1) if creates and mode & 0o6000 else ALLOW
    assert ask_program(X86_64, "open", 0, flags, mode) == expected
    for architecture in ARCHITECTURES.values():
        assert ask_program(architecture, "openat", 0, 0, flags, mode) == expected


@given(number=WORD, arguments=ARGUMENTS)
def test_call_of_a_program_for_another_architecture_kills(number, arguments):
    for architecture in ARCHITECTURES.values():
        for audit in (0x40000003, 0x40000028):
            assert ask_program(architecture, number, *arguments, audit=audit) == KILL
    assert ask_program(X86_64, number | 0x40000000, *arguments) == KILL


@given(flags=ARGUMENT, arguments=ARGUMENTS)
def test_program_installs_filters_without_a_listener_only(flags, arguments):
    for architecture in ARCHITECTURES.values():
        verdict = ask_program(architecture, "seccomp", 1, flags)
        assert verdict == (refuse(1) if flags & 8 else ALLOW)
        program, numbers = execution_filter(architecture), NUMBERS[architecture.machine]
        for name in ("execve", "execveat"):
            assert ask_program(architecture, name, *arguments) == ALLOW
            assert execute(program.code, architecture.audit, numbers[name], arguments) == NOTIFY
            assert execute(program.code, 0x40000003, numbers[name], arguments) == KILL
        assert execute(program.code, architecture.audit, numbers["clone"], arguments) == ALLOW
