"""The table `[plugins.shell]`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ._variables import check_variable

_KIBIBYTE = 1024
_MEBIBYTE = 1024 * _KIBIBYTE
_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")


class Config(BaseModel):
    """Where programs are found, and the limits of commands.

    Attributes:
        path: the folders in which a name without a `/` is looked up. Those that others than root may write to are left
            out.
        environment: variables that every command gets.
        max_seconds: the longest `timeout`.
        max_output_bytes: how much of each stream is answered; of more, the beginning and the end.
        max_total_bytes: how much a command may print at all.
        memory_bytes: of all its processes together.
        max_processes: processes and threads at once.
        max_open_files: of each process.
        max_file_bytes: the largest file that it may write.
        max_places: how many places one command may have.
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

    @field_validator("environment")
    @classmethod
    def _check_environment(cls, variables: dict[str, str]) -> dict[str, str]:
        for name, value in variables.items():
            check_variable(name, value)
        return variables
