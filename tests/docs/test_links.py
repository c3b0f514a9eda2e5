"""Links have valid targets, and commands shown in examples have valid options."""

import re
import shlex

import pytest

KINDS = ("core", "agent", "libs/*", "plugins/*", "contrib", "contrib/*")
PAGES = [
    "README.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/**/*.md",
    *(f"{kind}/README.md" for kind in KINDS),
]
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def pages(root):
    return [path for pattern in PAGES for path in root.glob(pattern)]


def anchors(text):
    """Return the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_have_valid_targets(pages):
    for page in pages:
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text()):
            file = page.parent / target if target else page
            assert file.exists(), (page, target)
            if anchor:
                assert anchor in anchors(file.read_text()), (page, target, anchor)


def test_options_of_shown_commands_exist(root, sideband):
    """Only the options are checked, because the commands need a model, a key or the network."""
    shown = {
        tuple(shlex.split(line, comments=True)[1:])
        for page in ["docs/agents.md"]
        for block in SHELL.findall((root / page).read_text())
        for line in block.splitlines()
        if line.startswith("sideband ")
    }
    assert shown
    for words in shown:
        command = [word for word in words[:2] if re.fullmatch(r"[a-z]+", word)]
        usage = sideband(*command, "--help").stdout
        for option in (word for word in words if word.startswith("--")):
            assert option in usage, words
