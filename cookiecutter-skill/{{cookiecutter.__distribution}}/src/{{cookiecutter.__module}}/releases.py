"""The tools of the skill. Each call of `http` and `sql` is a request to the host, which checks and records it."""

from typing import TypedDict
from urllib.parse import quote

from sideband.skill import http, sql, tool

DATABASE = "releases.db"
SCHEMA = "CREATE TABLE IF NOT EXISTS releases (repo TEXT PRIMARY KEY, version TEXT NOT NULL, page TEXT NOT NULL)"


class Release(TypedDict):
    """The latest release of a project."""

    repo: str
    version: str
    page: str
    new: bool


@tool
async def latest(repo: str) -> Release:
    """Find the latest release of a project, and remember it.

    Args:
        repo: The project on GitHub, as owner/name.

    Returns:
        The version and its page, and whether it differs from the one that was found before.
    """
    owner, _, name = repo.partition("/")
    if not owner or not name or "/" in name:
        raise ValueError(f"expected owner/name, got {repo!r}")
    answer = await http.get(f"https://api.github.com/repos/{quote(owner)}/{quote(name)}/releases/latest")
    if answer["status"] == 404:
        raise LookupError(f"{repo} has no release")
    if not answer["ok"]:
        raise RuntimeError(f"GitHub answered with status {answer['status']}")
    version, page = str(answer["json"]["tag_name"]), str(answer["json"]["html_url"])
    await sql.execute(SCHEMA, db=DATABASE)
    query = "SELECT version FROM releases WHERE repo = :repo"
    before = [row["version"] for row in (await sql.query(query, db=DATABASE, params={"repo": repo}))["rows"]]
    await sql.execute(
        "INSERT INTO releases VALUES (:repo, :version, :page)"
        " ON CONFLICT (repo) DO UPDATE SET version = excluded.version, page = excluded.page",
        db=DATABASE,
        params={"repo": repo, "version": version, "page": page},
    )
    return {"repo": repo, "version": version, "page": page, "new": before != [version]}


@tool
async def seen() -> dict[str, str]:
    """Return the version of each project that was found before.

    Returns:
        The versions, by project.
    """
    await sql.execute(SCHEMA, db=DATABASE)
    answer = await sql.query("SELECT repo, version FROM releases ORDER BY repo", db=DATABASE)
    return {row["repo"]: row["version"] for row in answer["rows"]}
