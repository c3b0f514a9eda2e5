"""The texts of skills: SKILL.md and the references, as resources and as prompts."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import anyio
from attrs import field, frozen
from sideband.loading import SkillSpec
from sideband.state import open_beneath

from ._offer import Offer

if TYPE_CHECKING:
    from sideband import Host

_SCHEME = "skill://"
_MAIN = frozenset({"skill.md", "readme.md"})
_LARGEST = 1 << 20
_TYPES = {".md": "text/markdown", ".txt": "text/plain", ".json": "application/json", ".png": "image/png"}


@frozen
class SkillText:
    """A file of a skill.

    Attributes:
        uri: its address, ``skill://NAME/FILE``.
        skill: the skill.
        file: the path of the file in it.
    """

    uri: str
    skill: SkillSpec = field(repr=False)
    file: str

    @property
    def media_type(self) -> str:
        """The media type, by the name of the file."""
        return _TYPES.get(PurePosixPath(self.file).suffix.lower(), "text/plain")


@frozen
class SkillTexts:
    """The texts of the skills that clients are offered."""

    host: Host = field(repr=False)
    offer: Offer

    async def skills(self) -> Sequence[SkillSpec]:
        """Return the skills, sorted by name. Those that models do not see are not offered."""
        shown = {one["name"] for one in await self.host.tools.skills()}
        skills = (await self.host.skills()).skills
        found = [one for one in skills if one.name in shown and self.offer.has_skill(one.name)]
        return sorted(found, key=lambda one: one.name)

    async def list(self) -> Sequence[SkillText]:
        """Return their files that are offered: SKILL.md and the references."""
        return [text for skill in await self.skills() for text in _texts(skill)]

    async def read(self, uri: str) -> tuple[SkillText, bytes] | None:
        """Return a file and its content without secrets, or ``None`` if it is not offered.

        Raises:
            OSError: if it cannot be read.
        """
        found = next((one for one in await self.list() if unquote(one.uri) == unquote(uri)), None)
        if found is None:
            return None
        raw = await anyio.to_thread.run_sync(_read, found.skill.source, found.file)
        try:
            return found, self.host.redactor.text(raw.decode()).encode()
        except UnicodeDecodeError:
            return found, raw

    async def instructions(self, name: str) -> tuple[SkillSpec, str] | None:
        """Return a skill and its instructions without secrets, or ``None`` if it is not offered."""
        found = next((one for one in await self.skills() if one.name == name), None)
        return None if found is None else (found, self.host.redactor.text(found.instructions))


def encoded(raw: bytes) -> str | None:
    """Return content that is not text as Base64; ``None`` for text."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return base64.b64encode(raw).decode()
    return None


def _texts(skill: SkillSpec) -> Iterator[SkillText]:
    for file in skill.files:
        if file.lower() in _MAIN or file.startswith("references/"):
            yield SkillText(f"{_SCHEME}{quote(skill.name)}/{quote(file)}", skill, file)


def _read(folder: Path, file: str) -> bytes:
    descriptor = open_beneath(Path(os.path.realpath(folder)), PurePosixPath(file).parts)
    with os.fdopen(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        raw = opened.read(_LARGEST + 1)
    if len(raw) > _LARGEST:
        raise OSError(f"larger than {_LARGEST:,} bytes")
    return raw
