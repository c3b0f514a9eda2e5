"""The environment of a command: a fixed one, and what the grant lets a caller add."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ._errors import ShellEnvironment

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")

# They decide which code runs or where a program looks for its own settings; whatever the grant says, they are ours.
_OURS = frozenset({
    "BASH_ENV", "BASHOPTS", "CDPATH", "ENV", "GCONV_PATH", "GLIBC_TUNABLES", "HOME", "HOSTALIASES", "IFS", "LOCPATH",
    "MALLOC_CHECK_", "NLSPATH", "PATH", "PROMPT_COMMAND", "PS4", "RESOLV_HOST_CONF", "RES_OPTIONS", "SHELL",
    "SHELLOPTS", "TMPDIR", "ZDOTDIR",
})  # fmt: skip
_OUR_BEGINNINGS = ("BASH_FUNC_", "DYLD_", "LD_")


def check_variable(name: str, value: str) -> None:
    """Let through what can be a variable.

    Raises:
        ValueError: what is wrong with it.
    """
    if not _NAME.match(name):
        raise ValueError("the name of a variable has letters, digits and `_`")
    if "\x00" in value:
        raise ValueError("a variable holds no NUL")


def refuse_variables(variables: Mapping[str, str]) -> None:
    """Refuse those that are not the caller's to set. Raises ``ShellEnvironment``."""
    for name in variables:
        if name.upper() in _OURS or name.upper().startswith(_OUR_BEGINNINGS):
            raise ShellEnvironment(name)


def environment_of(path: str, configured: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, str]:
    """The whole environment. The sandbox adds ``HOME`` and ``TMPDIR``, a folder that is the command's alone."""
    return {"LANG": "C.UTF-8", **configured, **asked, "PATH": path}
