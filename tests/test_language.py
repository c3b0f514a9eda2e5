"""The words that the project does not use, and the first words of docstrings: see docs/writing.md.

``python tests/test_language.py PATH…`` checks files and folders alone.
"""

import ast
import bisect
import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Each with what to write instead. A space also stands for the end of a line.
WORDS = {
    r"(?<![\"'])(no|some|any|every)(body|[- ]one(?! of))(?![\"'])|(some|any|every)one(?! of)|who(m|so)?ever": (
        "name the actor"
    ),
    r"(?<!/)(he|she|him|his|hers)": "name the actor, or write `they`",
    r"(what|all) there (is|was|are)": "name it",
    r"(is|are|was|were|has|have|had|or) (?-i:none)|there('s|'re) none": (
        "write unknown, missing, invalid or `does not exist`"
    ),
    r"(?<!there )(?<!there')(is|are|was|were|'s) no "
    r"(?!longer|more|less|later|earlier|matter|need|way|other|such|\w+er than)[a-z`%]\w*": "write `is not a`",
    r"told|tells? (it|them|whether|what|of|how|who|which|that|why|the)": "write report, notify or call",
    r"(is|are|was|were|be) said|sa(ys|id|y) so": "write reported or documented",
    r"(became|becomes|become|comes|came) of": "write result or outcome",
    r"anew": "write again",
    r"(can|can't|can not|cannot|could|to) be had": "write available",
    r"stands? (in|at|on|once|there|twice|beside|before|after|under|below|above|here|between|as|where|next|with)": (
        "write is, appears or is stored"
    ),
    r"take(s|n)? back|took back|taking back": "write undo or revert",
    r"under way": "write in progress or running",
    r"(?<![\"'])wish(es|ed)?": "write constraint, preference or request",
    r"asks? for what": "name what is requested",
    r"(labelled|modelled|travelled|towards|whilst)|(favour|colour|honour|catalogue|analys(e|ing)|centre)\w*": (
        "use American spelling"
    ),
    r"\w*[bv]iour\w*|\w*[Nn]eighbour\w*|\w*(ormal|ummar|ecogn|uthor|rgan|erial|nitial)is(e|es|ed|ing|ation)": (
        "use American spelling"
    ),
    r"can't|can not": "write cannot",
}
FIRST_WORDS = frozenset(
    "A About All An And As Both Each Either Every For From How If In It Its No None Nothing On One Only Some Something"  # noqa: SIM905  a list takes twenty lines
    " That The Their These They This Those What When Where Whether Which Who Whose Why With Without".split()
)
CHECKED = {".py", ".md", ".toml", ".txt", ".yml"}
# This file and the page list the words; requirements name packages.
UNCHECKED = ("tests/test_language.py", "docs/writing.md", "requirements/")

_PATTERNS = [(re.compile(rf"\b(?<!`)(?:{words})(?![\w`])", re.IGNORECASE), remedy) for words, remedy in WORDS.items()]
# Faster than each pattern in turn, and on small letters three times as fast as if it ignored case.
_ANY = re.compile(rf"\b(?<!`)(?:{'|'.join(WORDS)})(?![\w`])".replace("(?-i:none)", "none"))
_TEST_NAME = re.compile(r"\bdef test_\w+")


def problems(path):
    """Return what to change in a file, as ``line: words: remedy``."""
    text = path.read_text()
    if path.suffix == ".md":
        text = re.sub(r"[*_]|^[ \t]*[>-] ", "", text, flags=re.MULTILINE)
    found = list(_words(_TEST_NAME.sub(lambda name: name[0].replace("_", " "), text)))
    if path.suffix == ".py":
        nodes = list(_nodes(ast.parse(_without_templates(text))))
        found += _strings(nodes)
        if "tests" not in path.parts:
            found += _docstrings(nodes)
    return [f"{line}: {words}: {remedy}" for line, words, remedy in sorted(set(found))]


def _without_templates(text):
    """Return the text of a module without expressions and statements of Jinja, which templates of modules have."""
    return re.sub(r"\{%.*?%\}", "", re.sub(r"\{\{ cookiecutter.*?\}\}", "name", text))


def _words(text):
    lines = [re.sub(r"^\s*(# )?", "", line) for line in text.splitlines()]
    prose = " ".join(lines)
    if _ANY.search(prose.replace("None", "").lower()) is None:
        return
    starts = [0, *itertools.accumulate(len(line) + 1 for line in lines)]
    for pattern, remedy in _PATTERNS:
        for match in pattern.finditer(prose):
            yield bisect.bisect(starts, match.start()), match[0], remedy


def _nodes(tree):
    """Yield the nodes of a tree, as `ast.walk` does in three times the time."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        for value in vars(node).values():
            if type(value) is list:
                left += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                left.append(value)


def _strings(nodes):
    """Yield the words in strings as they are at run time: adjacent literals are one string."""
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            value = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            value = node.value
        else:
            continue
        if " " in value and node.end_col_offset - node.col_offset != len(value) + 2:  # other than in the source
            for _, words, remedy in _words(" ".join(value.split())):
                yield node.lineno, words, remedy


def _docstrings(nodes):
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not any(map(_is_property, node.decorator_list)):
            first = next(iter((ast.get_docstring(node) or "").split()), "")
            if first in FIRST_WORDS:
                yield node.body[0].lineno, first, "begin a function's docstring with a verb in the imperative"


def _is_property(decorator):
    return getattr(decorator, "id", getattr(decorator, "attr", "")) in {"property", "cached_property", "setter"}


def _tracked():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [path for path in listed.splitlines() if not path.startswith(UNCHECKED)]
    return [path for path in paths if Path(path).suffix in CHECKED and (ROOT / path).is_file()]


def test_project_uses_plain_english():
    found = {path: some for path in _tracked() if (some := problems(ROOT / path))}
    assert found == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# nobody waits", "nobody"),
        ("# what there\n    # is", "what there is"),
        ("def test_a_value_is_none(): ...", "is none"),
        ('raise ValueError(f"`{name}` is no name")', "is no name"),
        ('raise ValueError(f"this is no {name}")', "is no x"),
        ('raise ValueError("the caller is " "no caller")', "is no caller"),
        ("# Whoever waits", "Whoever"),
        ("# a colourful name", "colourful"),
        ('def f():\n    """The value."""', "The"),
    ],
)
def test_checker_finds_words_and_docstrings(text, words, tmp_path):
    path = tmp_path / "example.py"
    path.write_text(text)
    assert [problem.split(": ")[1] for problem in problems(path)] == [words]


@pytest.mark.parametrize(
    "text", ["# value is None", "# there is no timeout", '"nobody"', 'def f():\n    """Return it."""']
)
def test_checker_accepts_ordinary_english(text, tmp_path):
    path = tmp_path / "example.py"
    path.write_text(text)
    assert problems(path) == []


def main(names):
    """Print the problems of files and folders, and return how many there are."""
    roots = map(Path, names)
    paths = [path for root in roots for path in (sorted(root.rglob("*")) if root.is_dir() else [root])]
    checked = [path for path in paths if path.suffix in CHECKED and not str(path).startswith(UNCHECKED)]
    found = [f"{path}:{problem}" for path in checked for problem in problems(path)]
    print(*found, sep="\n", end="\n" if found else "")
    return len(found)


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
