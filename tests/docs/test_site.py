"""The site is complete, and a browser that shows it loads nothing from other hosts."""

import importlib
import re
import subprocess
import sys
import warnings
from html.parser import HTMLParser
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

# Elements whose address a browser loads when it shows a page.
LOADED = {
    "audio": "src",
    "embed": "src",
    "iframe": "src",
    "img": "src",
    "input": "src",
    "object": "data",
    "script": "src",
    "source": "src",
    "track": "src",
    "video": "src",
}
# Links of these kinds are shown or followed only if the reader asks for it.
NOT_LOADED = {"canonical", "next", "prev"}
# The theme loads these for diagrams and for browsers older than 2020. No page has a diagram.
NEVER_LOADED = {"https://unpkg.com/mermaid@11/dist/mermaid.min.js", "https://unpkg.com/resize-observer-polyfill"}
# The theme asks this service only if the site names a repository. The others are in comments of libraries.
NOT_ADDRESSED = {"https://api.github.com/repos/", "https://api.github.com/users/"}
IN_COMMENTS = {"https://clipboardjs.com/", "http://lunrjs.com", "https://bit.ly/2s3ChXG", "http://tartarus.org/"}


class Page(HTMLParser):
    """What a browser loads to show a page, the ids of its elements, and its links."""

    def __init__(self, text):
        super().__init__()
        self.loaded, self.ids, self.links, self.classes = [], set(), set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found[name] for name in ("id",) if name in found}
        self.classes |= set((found.get("class") or "").split())
        if tag in LOADED and found.get(LOADED[tag]):
            self.loaded.append(found[LOADED[tag]])
        if found.get("srcset"):
            self.loaded += found["srcset"].split()
        if tag == "link" and not NOT_LOADED & set(found.get("rel", "").split()):
            self.loaded.append(found["href"])
        if tag == "a" and "href" in found:
            self.links.add((found.get("class"), found["href"]))
        self.loaded += re.findall(r"url\(([^)]+)\)", found.get("style") or "")


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the site, as `make docs` writes it."""
    folder = tmp_path_factory.mktemp("site")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that build it
        build(load_config("mkdocs.yml", site_dir=str(folder)))
    return folder


@pytest.fixture(scope="session")
def shown(site):
    """The pages of the site by path."""
    return {file.relative_to(site).as_posix(): Page(file.read_text()) for file in site.rglob("*.html")}


def test_no_page_loads_anything_from_another_host(shown):
    assert len(shown) > 100
    for path, page in shown.items():
        assert page.loaded, path
        assert not [one for one in page.loaded if re.match(r"\s*['\"]?(?:\w+:)?//", one)], path
        assert "mermaid" not in page.classes, path


def test_styles_and_scripts_load_nothing_from_another_host(site):
    styles = "".join(file.read_text() for file in site.rglob("*.css"))
    assert not re.findall(r"(?:url\(|@import)\s*['\"]?(?:\w+:)?//[^)]*", styles)
    scripts = [
        *site.glob("assets/*.js"),
        *site.glob("assets/javascripts/*.js"),
        *site.glob("assets/javascripts/workers/*"),
    ]
    found = set(
        re.findall(r"(?<!\w)https?://[\w./@-]+", "".join(one.read_text() for one in scripts if one.suffix == ".js"))
    )
    assert {one for one in found if "w3.org" not in one} <= NEVER_LOADED | NOT_ADDRESSED | IN_COMMENTS


def test_search_needs_no_server(site, shown):
    index = (site / "search" / "search_index.js").read_text()
    assert index.startswith("var __index = ")
    assert "assets/iframe-worker.js" in shown["index.html"].loaded


def test_no_page_is_in_the_navigation_twice():
    listed = re.findall(r"^ *- (?:[^:\n]+: )?(\S+\.md)$", Path("mkdocs.yml").read_text(), re.MULTILINE)
    assert len(listed) > 50
    assert [one for one in listed if listed.count(one) > 1] == []


def test_no_cell_of_a_table_shows_the_backslash_of_an_escape(site):
    cells = [cell for file in site.rglob("*.html") for cell in re.findall(r"<td.*?</td>", file.read_text())]
    assert len(cells) > 1000
    assert [cell for cell in cells if "\\|" in cell] == []


def test_every_public_name_is_on_its_page(shown, import_page):
    api = import_page("_pages.api")
    for module in api.MODULES:
        page = shown[f"reference/{api._file(module).removesuffix('.md')}.html"]
        names = set(importlib.import_module(module).__all__) - {"__version__"}
        links = {link.rpartition("#")[2] for _, link in page.links}
        assert {name for name in names if name.lower() not in page.ids | links} == set(), module


def test_every_command_of_the_installed_packages_is_on_its_page(shown):
    names = {one.name for one in entry_points(group="sideband.v1.command")}
    assert len(names) > 15
    assert {f"sideband-{name}" for name in names} <= shown["reference/commands.html"].ids


def test_every_module_of_the_recorded_api_has_a_page(import_page):
    api, snapshot = import_page("_pages.api"), import_page("_api.snapshot")
    names = {one.__name__: set(getattr(one, "__all__", ())) - {"__version__"} for one in snapshot._public_modules()}
    assert {module for module, public in names.items() if public} == set(api.MODULES)


def test_types_in_signatures_and_tables_link_to_their_description(shown):
    links = {link for kind, link in shown["reference/api-sideband-ops.html"].links if kind == "api"}
    assert "api-sideband.html#opcontext" in links
    assert "#opfamily" in {link.rpartition("html")[2] for link in links}


def test_type_links_lead_to_an_element(shown):
    for path, page in shown.items():
        for kind, link in page.links:
            target, _, anchor = link.partition("#")
            if kind == "api" and target:
                place = "/".join([*path.split("/")[:-1], target])
                parts = []
                for part in place.split("/"):
                    parts = parts[:-1] if part == ".." else [*parts, part]
                assert anchor in shown["/".join(parts)].ids, (path, link)


@pytest.mark.parametrize("problem", ["[no page](missing.md)", "[no heading](#missing)", "[a file](../README.md)"])
def test_broken_link_fails_the_build(tmp_path, problem):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Start\n\n{problem}\n")
    with pytest.raises(Abort):
        build_small(tmp_path)


def test_page_outside_the_navigation_fails_the_build(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Start\n")
    build_small(tmp_path)
    (tmp_path / "docs" / "other.md").write_text("# Other\n")
    with pytest.raises(Abort):
        build_small(tmp_path)


def build_small(folder):
    """Build a site of one page with the configuration of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = load_config(
            "mkdocs.yml", docs_dir=str(folder / "docs"), site_dir=str(folder / "site"), nav=["index.md"], hooks=[],
            plugins=[],
        )  # fmt: skip
        build(config)


def test_changelog_shows_the_changes_since_the_last_release(root, site):
    assert (root / "CHANGELOG.md").read_text().rstrip().endswith("<!-- towncrier release notes start -->")
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "Unreleased", "--date", ""]
    draft = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    assert "### Added" in draft
    assert 'id="unreleased"' in (site / "project" / "changelog.html").read_text()
