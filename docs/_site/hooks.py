"""Hooks of MkDocs: pages from outside this folder, patterns in the navigation, and links to the Python API.

Pages link to other files of the repository as the repository has them, so that their links work there too. The builder
rewrites each link to the page of the file, and refuses one to a file without a page.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parents[1]))
from _pages.api import GROUPS, OF_PACKAGES  # type: ignore[import-not-found]
from generate import NOTE, pages  # type: ignore[import-not-found]

_ROOT = Path(__file__).parents[2]
_INDEXES = ("explanation", "how-to", "reference")
_PACKAGES = ("core", "agent", "libs/*", "plugins/*", "contrib/*")
_FENCED = re.compile(r"(^ *```.*?^ *```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")
_NAME = re.compile(r"^## (\w+)$\n\n`from ([\w.]+) import", re.MULTILINE)
_CELL = re.compile(r"<td[^>]*>.*?</td>", re.DOTALL)
_CODE = re.compile(r"(<a [^>]*>.*?</a>)|(<code[^>]*>)(.*?)(</code>)", re.DOTALL)
_DOT = re.compile(r"(?<=[a-z_])\.(?=[A-Za-z_])")
_WORD = re.compile(r"(<[^>]*>)|\b([A-Z][A-Za-z]{3,})\b")

log = logging.getLogger("mkdocs.hooks.sideband")


def _moved() -> dict[str, Path]:
    """Return the files that are elsewhere than their page, by the path of the page.

    These are the files outside the folder of the pages, and the first pages of sections: the theme shows a section and
    its first page as one entry if the page is an index.
    """
    readmes = sorted(path for kind in _PACKAGES for path in _ROOT.glob(f"{kind}/README.md"))
    names = {"core": "sideband-core", "agent": "sideband-agent"}
    pages = {f"packages/{names.get(one.parent.name, f'sideband-{one.parent.name}')}.md": one for one in readmes}
    return {
        **{f"{name}/index.md": _ROOT / "docs" / f"{name}.md" for name in _INDEXES},
        **dict(sorted(pages.items())),
        "packages/contributed.md": _ROOT / "contrib" / "README.md",
        "project/benchmarks.md": _ROOT / "benchmarks" / "README.md",
        "project/changelog.md": _ROOT / "CHANGELOG.md",
        "project/contributing.md": _ROOT / "CONTRIBUTING.md",
        "project/security.md": _ROOT / "SECURITY.md",
    }


def on_config(config: MkDocsConfig) -> None:
    """Replace the patterns in the navigation by the pages that match."""
    docs = Path(config.docs_dir)
    written = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md") if path.parent.name != "reference"]
    config.nav = _expanded(config.nav or [], sorted([*written, *_moved()]))


def _expanded(entries: list[Any], pages: list[str]) -> list[Any]:
    found: list[Any] = []
    for entry in entries:
        if isinstance(entry, dict):
            found.append({
                title: _expanded(below, pages) if isinstance(below, list) else below for title, below in entry.items()
            })  # fmt: skip
        elif entry == "reference/api-*.md":
            found += [{title: [f"reference/{name}" for name in names]} for title, names in GROUPS.items()]
        elif "*" in entry:
            found += [page for page in pages if fnmatch(page, entry)]
        else:
            found.append(entry)
    return found


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages whose files are elsewhere, and those that are generated, as the code is now."""
    elsewhere = {f"{name}.md" for name in _INDEXES}
    for file in [one for one in files if one.src_uri.startswith("reference/") or one.src_uri in elsewhere]:
        files.remove(file)
    for name, text in pages().items():
        files.append(File.generated(config, f"reference/{name}", content=text.removeprefix(NOTE)))
    for place, path in _moved().items():
        files.append(File.generated(config, place, abs_src_path=str(path)))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links to files of the repository, and show the changes since the last release."""
    if page.is_homepage:
        page.meta["hide"] = ["navigation"]
    source = Path(page.file.abs_src_path or Path(config.docs_dir, page.file.src_uri))
    if source == _ROOT / "CHANGELOG.md":
        source, markdown = _ROOT / "changelog", f"{markdown}\n{_unreleased()}"
    docs = Path(config.docs_dir)
    places = {Path(file.abs_src_path or docs / file.src_uri): file.src_uri for file in files}

    def rewritten(match: re.Match[str]) -> str:
        target, anchor = match[1], match[2] or ""
        if not target or ":" in target:
            return match[0]
        path = Path(os.path.normpath(source.parent / target))
        if path not in places:
            log.warning("%s links to %s, which has no page", source.relative_to(_ROOT), target)
            return match[0]
        return f"]({os.path.relpath(places[path], Path(page.file.src_uri).parent)}{anchor})"

    parts = _FENCED.split(markdown)
    return "".join(text if index % 2 else _LINK.sub(rewritten, text) for index, text in enumerate(parts))


def _unreleased() -> str:
    """Return the fragments of the changelog as they would be released."""
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "Unreleased", "--date", ""]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        message = f"towncrier could not join the changelog: {done.stderr.strip()}"
        raise PluginError(message)
    return done.stdout.replace("## Unreleased ()", "## Unreleased")


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001  MkDocs passes it
    """Link each name of the Python API that code contains to its description, and lay out the code in tables."""
    known = _names(files)
    own = page.file.src_uri
    general = {f"reference/{name}" for title, names in GROUPS.items() if title != OF_PACKAGES for name in names}
    places = {
        name: own if own in described else next((one for one in described if one in general), "")
        for name, described in known.items()
    }

    def linked(match: re.Match[str]) -> str:
        return match[0] if match[1] else match[2] + _WORD.sub(named, match[3]) + match[4]

    def named(match: re.Match[str]) -> str:
        file = files.get_file_from_path(places.get(match[2], ""))
        if file is None:
            return match[0]
        return f'<a class="api" href="{file.url_relative_to(page.file)}#{match[2].lower()}">{match[2]}</a>'

    return _CODE.sub(linked, _CELL.sub(_laid_out, html))


def _laid_out(cell: re.Match[str]) -> str:
    r"""Show ``|`` without the backslash, and let long qualified names break after a dot.

    The pages write ``\|`` in a table, since ``|`` would end the cell. The converter keeps the backslash in code.
    """
    return _CODE.sub(
        lambda code: code[0] if code[1] else code[2] + _DOT.sub(".<wbr>", code[3]) + code[4],
        cell[0].replace("\\|", "|"),
    )


_found: dict[str, list[str]] = {}


def _names(files: Files) -> dict[str, list[str]]:
    """Return the pages that describe each name of the Python API."""
    if not _found:
        for file in files.documentation_pages():
            if fnmatch(file.src_uri, "reference/api-*.md"):
                for name, _ in _NAME.findall(file.content_string):
                    _found.setdefault(name, []).append(file.src_uri)
    return _found
