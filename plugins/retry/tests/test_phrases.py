import json

import pytest
from sideband_retry._classes import CLASSES, ErrorKind

PHRASES = [(kind, phrase) for kind, one in CLASSES.items() for phrase in one.phrases]


def as_message(phrase):
    """Return a message as a server would write it: some phrases are a whole value, or the beginning of one."""
    if not phrase.startswith('"'):
        return f"Call failed: {phrase} (request 7f3a)"
    return phrase[1:-1] if phrase.endswith('"') else f"{phrase[1:]}claude-x"


def bodies(phrase):
    message = as_message(phrase)
    openai = {"error": {"message": message, "type": None, "param": None, "code": None}}
    return {
        "openai": json.dumps(openai),
        "anthropic": json.dumps({"type": "error", "error": {"type": "error", "message": message}}),
        "google": json.dumps([{"error": {"message": message, "details": []}}], ensure_ascii=False, indent=2),
        "openrouter": json.dumps({"error": {"message": "failed", "metadata": {"raw": json.dumps(openai)}}}),
        "vllm": json.dumps({"object": "error", "message": message, "type": "Error", "param": None}),
        "ollama": json.dumps({"error": message}),
        "fastapi": json.dumps({"detail": [{"msg": message}]}),
        "upper case": json.dumps({"error": {"code": message.upper()}}),
        "cut": json.dumps(openai)[:-20] if len(json.dumps(openai)) > 90 else json.dumps(openai),
    }


@pytest.mark.parametrize(("kind", "phrase"), PHRASES, ids=[f"{kind.value}: {phrase}" for kind, phrase in PHRASES])
def test_phrase_indicates_its_class_in_every_servers_format(ask, kind, phrase):
    for server, body in bodies(phrase).items():
        assert ask(body=body).kind == kind.value, server


@pytest.mark.parametrize("kind", [kind for kind, one in CLASSES.items() if one.phrases])
def test_phrase_does_not_contain_another_one_of_its_class(kind):
    phrases = CLASSES[kind].phrases
    useless = [(one, other) for one in phrases for other in phrases if one != other and one in other]
    assert not useless


def test_class_with_phrases_has_at_least_fifteen():
    """Invalid tool calls are reported by few servers, each with one code."""
    counts = {kind: len(one.phrases) for kind, one in CLASSES.items() if one.phrases}
    del counts[ErrorKind.TOOL_USE_FAILED]
    assert min(counts.values()) >= 15
    assert set(CLASSES) == set(ErrorKind)


def test_phrases_are_in_lower_case():
    assert not [phrase for _, phrase in PHRASES if phrase != phrase.lower()]
