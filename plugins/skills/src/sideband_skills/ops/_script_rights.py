"""The capabilities that running a script requires."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from ._interpreters import Started
from ._models import SkillPrepareParams
from ._scratch import ScratchFolder


def capabilities_of(
    program: Started, digest: str, folder: str, requirements: Sequence[str], params: SkillPrepareParams
) -> list[str]:
    """Return all that a script needs. It contains the snapshot, so a changed skill needs other capabilities.

    Args:
        program: the program that runs it.
        digest: the digest of the skill.
        folder: the snapshot of the skill.
        requirements: the packages of the script.
        params: the places that it may change, and whether it needs the network.
    """
    scratch = f"{ScratchFolder.root(digest)}/*"
    read = "|".join(map(quote, [folder, *program.places]))
    write = "|".join([*map(quote, params.places), scratch])
    run = f"shell:binary={quote(program.binary)},code=yes,runs=any,network={'yes' if params.network else 'no'}"
    files = "|".join(f"{quote(one.rstrip('/'))}/*" for one in params.places)
    packages = "|".join(quote(one, safe="") for one in requirements)
    return [
        f"skills:script={digest}/*",
        f"{run},place={read},mode=read",
        f"{run},place={write},mode=write",
        f"files:path={scratch},mode=read|write,hidden=*",
        *([f"files:path={files},mode=read|write,hidden=*"] if files else []),
        "blobs:mode=write",
        *([f"skills:package={packages}"] if packages else []),
    ]
