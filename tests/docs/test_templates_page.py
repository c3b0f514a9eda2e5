"""The commands of the page on templates make projects as shown, and its tables are complete."""

from sideband_templates import Template

PAGE = "docs/templates.md"


def test_page_works_as_shown(walk, tmp_path):
    walk(PAGE, tmp_path)
    assert (tmp_path / "sideband-weather/src/sideband_weather/plugin.py").exists()
    assert (tmp_path / "projects/sideband-star-watch").exists()


def test_page_names_each_kind_and_question(page):
    text = page(PAGE).text
    questions = {one.name: one for one in Template.read("plugin").questions}
    assert all(f"| `{kind}` |" in text for kind in questions["kind"].choices)
    asked = {name for name, one in questions.items() if not one.is_derived} - {"name", "kind"}
    assert all(f"`{name}`" in text for name in asked)
