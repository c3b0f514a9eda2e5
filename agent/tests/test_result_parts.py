"""How the result of a tool is converted to parts, and which metadata it cannot set."""

import pytest
from sideband.broker import Redaction
from sideband.messages import TextPart
from sideband_agent._tools._result_parts import fitted_metadata, fitted_parts

OF_THE_AGENT = (
    *("code", "denied", "effect", "hint", "ms", "output", "plugin"),
    *("repaired", "replay", "replayed", "unknown", "withheld_by"),
)
OF_SKILLS = ("effects", "isolation")


@pytest.mark.parametrize(("given", "text"), [("\ud83d", "\ufffd"), ("\ud83d\ude00", "\U0001f600"), ("plain", "plain")])
def test_text_without_whole_characters_is_repaired(given, text):
    for content in (given, TextPart(text=given), [TextPart(text=given)]):
        assert [part.text for part in fitted_parts(content)] == [text]
    assert [part.text for part in fitted_parts([TextPart(text=given)] * 2)] == [f"{text}\n{text}"]


def test_a_tool_cannot_set_metadata_of_the_agent():
    given = dict.fromkeys([*OF_THE_AGENT, *OF_SKILLS, "pages"], "forged")
    assert fitted_metadata(given, Redaction(), source="source tickets") == {"pages": "forged"}


def test_metadata_of_a_skill_includes_its_effects_and_its_isolation():
    given = dict.fromkeys([*OF_THE_AGENT, *OF_SKILLS], "seen")
    assert fitted_metadata(given, Redaction(), source="skill github") == dict.fromkeys(OF_SKILLS, "seen")


@pytest.mark.parametrize("source", ["source tickets", "session", "skill github"])
def test_only_tools_of_plugins_say_what_the_user_has_pre_approved(source):
    given = {"skill": "release", "allowed_tools": ["command"]}
    assert "allowed_tools" not in fitted_metadata(given, Redaction(), source=source)
    assert fitted_metadata(given, Redaction(), source="plugin skill") == given
