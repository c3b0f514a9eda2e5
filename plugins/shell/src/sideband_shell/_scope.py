"""What a capability of `shell` may limit, and what a request is compared with.

A vector of arguments is compared as one string, each argument quoted as POSIX shells do, with a space in between: so
no argument can look like two, or two like one. A pattern ends where an argument ends.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

import attrs
from sideband.ops import CapabilityInvalid, Scope

NO_OPTIONS = "none"
_NOTHING = "none/"  # no place and no variable is called so

# Programs whose arguments are programs. Named without a version.
_RUN_CODE = frozenset({
    "ash", "at", "awk", "bash", "batch", "bun", "busybox", "capsh", "chroot", "chrt", "csh", "dash", "deno", "doas",
    "elvish", "emacs", "env", "expect", "fish", "flock", "gawk", "gdb", "guile", "ionice", "irb", "java", "jrunscript",
    "jshell", "julia", "ksh", "ld.so", "lua", "luajit", "mawk", "mksh", "nawk", "nice", "node", "nodejs", "nohup",
    "nsenter", "nu", "numactl", "osascript", "parallel", "pdksh", "perl", "php", "pwsh", "pypy", "python", "rbash",
    "Rscript", "ruby", "run-parts", "runuser", "rzsh", "screen", "script", "setarch", "setpriv", "setsid", "sh",
    "socat", "start-stop-daemon", "stdbuf", "strace", "su", "sudo", "systemd-run", "taskset", "tclsh", "tcsh", "time",
    "timeout", "tmux", "toybox", "tsx", "unbuffer", "unshare", "watch", "wish", "xargs", "xonsh", "yash", "zsh",
})  # fmt: skip
_VERSION = re.compile(r"[-.]?[0-9][0-9.a-z]*\Z")
_LOADER = re.compile(r"ld(-linux|-musl|64|-)?.*\.so(\.[0-9]+)*\Z")


@attrs.frozen
class ShellScope(Scope, family="shell"):
    """What a capability of `shell` may limit: `shell:binary=git,sub=status,place=/srv/repo`.

    Attributes:
        binary: the name that is looked up, or the absolute path without symbolic links.
        sub: the first argument.
        args: all arguments, quoted as shells do and joined by spaces; a pattern ends with a whole argument and a space
            (`args=log%20*`).
        options: the arguments that begin with `-`, quoted and joined alike, or `none`. Where a capability names `sub`
            or a pattern of `args` and not this, it allows the options that stand there, and no others.
        code: `yes` for shells, interpreters and programs that start others. Where a capability does not name its
            binaries in full, `no`.
        network: `yes` or `no`; `no` where a capability does not say.
        place: the absolute path without symbolic links, or a path relative to `HOME/files`; none where a capability
            does not say.
        mode: `read` or `write`; `read` where a capability does not say.
        env: the name of a variable that the caller sets; none where a capability does not say.
    """

    binary: str | None = None
    sub: str | None = None
    args: str | None = None
    options: str | None = None
    code: str | None = None
    network: str | None = None
    place: str | None = None
    mode: str | None = None
    env: str | None = None

    # Each place and each variable is a request of its own, which leaves the others open.
    known_later = ("place", "mode", "env")

    @classmethod
    def complete(cls, fields: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
        """Nothing but a command that can't be told otherwise, without places, network and variables.

        Raises:
            CapabilityInvalid: a pattern of `args` ends within an argument.
        """
        added: dict[str, tuple[str, ...]] = {
            "network": ("no",),
            "place": (_NOTHING,),
            "mode": ("read",),
            "env": (_NOTHING,),
        }
        binaries = fields.get("binary", ("*",))
        if any(name.endswith("*") for name in binaries):
            added["code"] = ("no",)
        vectors = [_fixed_words(pattern) for pattern in fields.get("args", ())]
        vectors += [[pattern] for pattern in fields.get("sub", ()) if not pattern.endswith("*")]
        if "sub" in fields or any(pattern.endswith("*") for pattern in fields.get("args", ())):
            added["options"] = tuple(dict.fromkeys(map(_options, vectors))) or (NO_OPTIONS,)
        return added


def scopes_of(
    binary: str, args: Sequence[str], *, network: bool, places: Mapping[str, str], variables: Sequence[str]
) -> Iterator[ShellScope]:
    """What the grant must cover: the command, and each of its places and variables.

    Args:
        binary: as capabilities call it.
        args: its arguments.
        network: whether it asks for the network.
        places: path and mode.
        variables: names.
    """
    command = ShellScope(
        binary=binary,
        sub=args[0] if args else None,
        args=shlex.join(args) if args else None,
        options=_options(args),
        code="yes" if runs_code(binary) else "no",
        network="yes" if network else "no",
    )
    yield command
    for place, mode in places.items():
        yield attrs.evolve(command, place=place, mode=mode)
    for name in variables:
        yield attrs.evolve(command, env=name)


def runs_code(binary: str) -> bool:
    """Whether a program of this name runs what its arguments say: a shell, an interpreter, a starter of others.

    Example:
        >>> runs_code("/usr/bin/python3.11"), runs_code("git")
        (True, False)
    """
    name = binary.rpartition("/")[2].lower()
    known = {each.lower() for each in _RUN_CODE}
    return name in known or _VERSION.sub("", name) in known or bool(_LOADER.match(name))


def _options(args: Sequence[str]) -> str:
    return shlex.join(each for each in args if each.startswith("-")) or NO_OPTIONS


def _fixed_words(pattern: str) -> list[str]:
    """The whole arguments that a pattern begins with."""
    text = pattern.removesuffix("*")
    try:
        words = shlex.split(text)
    except ValueError:
        words = None
    if words is None or (pattern.endswith("*") and text and not text.endswith(" ")):
        problem = f"the pattern `{pattern}` of `args` ends within an argument; end it with `%20*`"
        raise CapabilityInvalid(f"shell:args={pattern}", problem)
    return words
