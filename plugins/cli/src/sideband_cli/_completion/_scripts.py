"""The scripts that make a shell ask for completions."""

from __future__ import annotations

# Where the scripts of argcomplete run the program. It must be asked with the name of this command.
_PROGRAMS = {"${script:-$1}": '"$1" completion', "${script:-${words[1]}}": '"${words[1]}" completion'}


def script_for(shell: str) -> str:
    """Return the script for a shell.

    Args:
        shell: bash, zsh or fish.
    """
    from argcomplete.shell_integration import shellcode

    if shell == "fish":
        return shellcode(["sideband"], shell=shell, argcomplete_script="sideband completion")
    text = shellcode(["sideband"], shell=shell)
    for before, after in _PROGRAMS.items():
        text = text.replace(before, after)
    return text
