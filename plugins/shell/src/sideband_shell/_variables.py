"""The environment of a program: fixed variables, and those of the caller that the grant covers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ._errors import ShellEnvironment

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")

# Variables that decide which code runs or where a program finds its settings. Callers cannot set them with any grant.
_RESERVED = frozenset({
    "BASH_ENV", "BASHOPTS", "CDPATH", "ENV", "GCONV_PATH", "GLIBC_TUNABLES", "HOME", "HOSTALIASES", "IFS", "LOCPATH",
    "MALLOC_CHECK_", "NLSPATH", "PATH", "PROMPT_COMMAND", "PS4", "RESOLV_HOST_CONF", "RES_OPTIONS", "SHELL",
    "SHELLOPTS", "TMPDIR", "ZDOTDIR",
})  # fmt: skip
_RESERVED_PREFIXES = ("BASH_FUNC_", "DYLD_", "LD_")


def check_variable(name: str, value: str) -> None:
    """Check that an environment variable is valid.

    Raises:
        ValueError: if it is invalid.
    """
    if not _NAME.match(name):
        raise ValueError("the name of a variable must consist of letters, digits and `_`")
    if "\x00" in value:
        raise ValueError("a variable must not contain NUL")


def refuse_variables(variables: Mapping[str, str]) -> None:
    """Raise ``ShellEnvironment`` if the caller sets a reserved variable."""
    for name in variables:
        if name.upper() in _RESERVED or name.upper().startswith(_RESERVED_PREFIXES):
            raise ShellEnvironment(name)


def environment_of(path: str, configured: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, str]:
    """Return the environment. The sandbox adds ``HOME`` and ``TMPDIR``, which name the program's temporary folder."""
    # Programs cannot read /etc/gitconfig, and without namespaces git would end with an error.
    return {"LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1", **configured, **asked, "PATH": path}
