"""The table `[plugins.shell]`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ._variables import check_variable

_KIBIBYTE = 1024
_MEBIBYTE = 1024 * _KIBIBYTE
_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")


class Config(BaseModel):
    """The search path and the limits of programs.

    Attributes:
        path: the folders in which a name without a `/` is looked up. Folders that users other than root can write to
            are skipped.
        environment: variables set for every program.
        max_seconds: the maximum `timeout`.
        max_output_bytes: the maximum size of each stream in a result; longer output keeps its beginning and end.
        max_total_bytes: the maximum size of the whole output; a program that prints more is killed.
        memory_bytes: the maximum memory of all its processes together.
        max_processes: the maximum number of processes and threads.
        max_open_files: the maximum number of open files of each process.
        max_file_bytes: the maximum size of a file that it writes.
        max_places: the maximum number of places.
        max_background: the maximum number of programs that one session runs in the background.
        max_background_total: the same for all sessions of the host.
        max_background_bytes: the number of bytes of the output of each of them that are kept, the newest ones.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: tuple[Annotated[str, Field(pattern=r"^/")], ...] = _PATH
    environment: dict[str, str] = {}
    max_seconds: Annotated[float, Field(gt=0, le=86_400)] = 3_600.0
    max_output_bytes: Annotated[int, Field(ge=_KIBIBYTE, le=4 * _MEBIBYTE)] = 256 * _KIBIBYTE
    max_total_bytes: Annotated[int, Field(ge=_KIBIBYTE)] = 256 * _MEBIBYTE
    memory_bytes: Annotated[int, Field(ge=16 * _MEBIBYTE)] = 2_048 * _MEBIBYTE
    max_processes: Annotated[int, Field(ge=1, le=32_768)] = 256
    max_open_files: Annotated[int, Field(ge=16, le=65_536)] = 256
    max_file_bytes: Annotated[int, Field(ge=0)] = 1_024 * _MEBIBYTE
    max_places: Annotated[int, Field(ge=0, le=64)] = 16
    max_background: Annotated[int, Field(ge=0, le=1_000)] = 8
    max_background_total: Annotated[int, Field(ge=0, le=10_000)] = 64
    max_background_bytes: Annotated[int, Field(ge=_KIBIBYTE, le=64 * _MEBIBYTE)] = _MEBIBYTE

    @field_validator("environment")
    @classmethod
    def _check_environment(cls, variables: dict[str, str]) -> dict[str, str]:
        for name, value in variables.items():
            check_variable(name, value)
        return variables
