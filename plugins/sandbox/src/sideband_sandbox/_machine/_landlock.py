"""Asks the kernel which access rights its Landlock can restrict."""

from __future__ import annotations

import ctypes
import os
import struct

from attrs import frozen

MINIMUM_ABI = 3  # the first version that restricts truncation; with older ones a file could be emptied

EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIRECTORY = 1 << 3
_TRUNCATE = 1 << 14
# Remove folders and files; create folders, files, sockets, pipes and links; rename across folders. No device nodes.
_CHANGE_FOLDER = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12 | 1 << 13
WRITABLE = WRITE_FILE | _TRUNCATE | _CHANGE_FOLDER
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE
# Connect to a unix socket by its path, unless the program itself has created it: version 9 (Linux 7.1).
CONNECT_UNIX = 1 << 16
# Connect to a unix socket by its abstract name: version 6 (Linux 6.12).
_ABSTRACT_SOCKETS = 1 << 0

_CREATE_RULESET = 444
_VERSION_FLAG = 1
_MAXIMUM_BITS = 32


@frozen
class Landlock:
    """The rights that the kernel knows. A worker's ruleset handles, and so denies, all of them.

    Args:
        abi: the kernel's version of the interface.
        files: the mask of rights on files.
        network: the mask of rights on TCP ports.
        scopes: the mask of scopes: abstract sockets, signals.
    """

    abi: int
    files: int
    network: int
    scopes: int

    @property
    def hides_abstract_sockets(self) -> bool:
        """Whether the machine's unix sockets with abstract names are out of reach."""
        return bool(self.scopes & _ABSTRACT_SOCKETS)

    @property
    def hides_sockets(self) -> bool:
        """Whether all unix sockets of the machine are out of reach, except where a rule allows them."""
        return bool(self.files & CONNECT_UNIX) and self.hides_abstract_sockets


def landlock() -> Landlock | None:
    """Return the features of the kernel's Landlock, or ``None`` if it is missing or disabled.

    Each mask is found by removing bits until the kernel accepts it, so that rights newer than this code are denied too.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    abi = int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG)))
    if abi < 1:
        return None
    return Landlock(
        abi=abi,
        files=_largest(libc, 0),
        network=_largest(libc, 1) if abi >= 4 else 0,
        scopes=_largest(libc, 2) if abi >= 6 else 0,
    )


def _largest(libc: ctypes.CDLL, position: int) -> int:
    """Return the widest mask that the kernel accepts in this field of ``struct landlock_ruleset_attr``."""
    for bits in range(_MAXIMUM_BITS, 0, -1):
        mask = (1 << bits) - 1
        fields = [0, 0, 0]
        fields[position] = mask
        if _accepted(libc, struct.pack("=QQQ", *fields)[: 8 * (position + 1)]):
            return mask
    return 0


def _accepted(libc: ctypes.CDLL, attributes: bytes) -> bool:
    descriptor = int(libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0)))
    if descriptor < 0:
        return False
    os.close(descriptor)
    return True
