"""A small assembler for seccomp filters: translates rules to classic BPF.

A filter is a list of rules, one per system call. Each block of the program ends in a verdict, so blocks are
independent of each other and can be read one at a time:

    load architecture; not native → kill
    load number; of a foreign interface → kill
    for each rule:  number differs → next rule;  checks pass → the rule's verdict;  else → the default verdict
    the default verdict
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from attrs import frozen

from ._tables import Architecture

ALLOW = 0x7FFF0000
KILL = 0x80000000
NOTIFY = 0x7FC00000  # suspend the call and ask the listener, or ENOSYS without one
OWN_PID = "own pid"

_LOAD_WORD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_AND = 0x54  # BPF_ALU | BPF_AND | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K

_NUMBER_OFFSET = 0
_ARCHITECTURE_OFFSET = 4
_ARGUMENTS_OFFSET = 16
_LONGEST_JUMP = 255
_WORD = 0xFFFFFFFF


def refuse(number: int) -> int:
    """Return the verdict that makes a call fail with this errno."""
    return 0x00050000 | number


@frozen
class Check:
    """One condition on an argument of a call.

    Args:
        argument: the index of the argument, from 0.
        value: the required value after masking; ``OWN_PID`` for the ID of the process that installs the filter.
        mask: the bits of the low word to compare.
        wide: whether the high word must be 0. Leave it out for arguments that the kernel reads as 32 bits, because the
            kernel ignores their high word too.
    """

    argument: int
    value: int | str
    mask: int = _WORD
    wide: bool = False


@frozen
class Rule:
    """The verdict on one system call.

    Args:
        number: the number of the call.
        verdict: the verdict if the checks pass.
        any_of: alternative groups of checks; all checks of one group must pass. Empty means always.
        otherwise: the verdict if no group passes; the filter's default if ``None``.
    """

    number: int
    verdict: int = ALLOW
    any_of: tuple[tuple[Check, ...], ...] = ()
    otherwise: int | None = None


@frozen
class SeccompFilter:
    """An assembled filter.

    Args:
        code: the instructions, 8 bytes each, in native byte order.
        own_pid_at: the indexes of instructions whose operand must be set to the ID of the process that installs it.
    """

    code: bytes
    own_pid_at: tuple[int, ...] = ()

    def __len__(self) -> int:
        """Return the number of instructions."""
        return len(self.code) // 8


@frozen
class _Instruction:
    code: int
    operand: int
    if_true: int = 0
    if_false: int = 0
    own_pid: bool = False


def assemble(architecture: Architecture, rules: Sequence[Rule], default: int) -> SeccompFilter:
    """Assemble the filter for one architecture.

    Args:
        architecture: the architecture of the rules' numbers; calls of any other one kill the process.
        rules: at most one rule per number.
        default: the verdict on calls without a rule, and on those whose checks do not pass.

    Raises:
        ValueError: if a number has two rules, or a rule is too long for a jump.
    """
    numbers = [rule.number for rule in rules]
    if len(set(numbers)) != len(numbers):
        raise ValueError("duplicate rule for a system call")
    program = _prologue(architecture)
    for rule in rules:
        body = _rule_body(rule, default)
        if len(body) > _LONGEST_JUMP:
            raise ValueError(f"rule for system call {rule.number} is too long")
        program += [_Instruction(_JUMP_EQUAL, rule.number, if_false=len(body)), *body]
    program.append(_Instruction(_RETURN, default))
    return SeccompFilter(
        code=b"".join(struct.pack("=HBBI", each.code, each.if_true, each.if_false, each.operand) for each in program),
        own_pid_at=tuple(index for index, each in enumerate(program) if each.own_pid),
    )


def _prologue(architecture: Architecture) -> list[_Instruction]:
    """Kill calls through another interface; leave the number of the call in the accumulator."""
    program = [
        _Instruction(_LOAD_WORD, _ARCHITECTURE_OFFSET),
        _Instruction(_JUMP_EQUAL, architecture.audit, if_true=1),
        _Instruction(_RETURN, KILL),
        _Instruction(_LOAD_WORD, _NUMBER_OFFSET),
    ]
    if architecture.foreign_from:
        program += [
            _Instruction(_JUMP_AT_LEAST, architecture.foreign_from, if_false=1),
            _Instruction(_RETURN, KILL),
        ]
    return program


def _rule_body(rule: Rule, default: int) -> list[_Instruction]:
    if not rule.any_of:
        return [_Instruction(_RETURN, rule.verdict)]
    body: list[_Instruction] = []
    for checks in rule.any_of:
        body += _alternative(checks, rule.verdict)
    return [*body, _Instruction(_RETURN, default if rule.otherwise is None else rule.otherwise)]


def _alternative(checks: tuple[Check, ...], verdict: int) -> list[_Instruction]:
    """Return the checks, then the verdict. Built backwards, because a failing check jumps past the verdict."""
    alternative = [_Instruction(_RETURN, verdict)]
    for check in reversed(checks):
        alternative = _check(check, behind=len(alternative)) + alternative
    return alternative


def _check(check: Check, behind: int) -> list[_Instruction]:
    """Continue if the check passes, else skip the ``behind`` instructions that follow the check."""
    offset = _ARGUMENTS_OFFSET + 8 * check.argument
    low = [_Instruction(_LOAD_WORD, offset)]
    if check.mask != _WORD:
        low.append(_Instruction(_AND, check.mask))
    own_pid = isinstance(check.value, str)
    value = 0 if isinstance(check.value, str) else check.value
    low.append(_Instruction(_JUMP_EQUAL, value, if_false=behind, own_pid=own_pid))
    if not check.wide:
        return low
    return [
        _Instruction(_LOAD_WORD, offset + 4),
        _Instruction(_JUMP_EQUAL, 0, if_false=len(low) + behind),
        *low,
    ]
