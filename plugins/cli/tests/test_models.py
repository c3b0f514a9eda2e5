"""`sideband models list` with the scripted provider."""

import json
from argparse import ArgumentParser

import pytest
from sideband_cli.commands.models import sideband_commands
from sideband_llm import ProviderUnknown

LONG = "a-name/that-is-longer-than-what-a-line-of-a-terminal-has-room-for-and-goes-on"


@pytest.fixture
def models(tmp_path, monkeypatch, capsys):
    script = tmp_path / "models.toml"
    script.write_text(f'[models.small]\ncontext_window = 8000\nturns = ["x"]\n[models."{LONG}"]\nturns = ["x"]\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIDEBAND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SIDEBAND_POLICY__ONLY", '["op.llm", "provider.scripted", "store.*"]')
    monkeypatch.setenv("SIDEBAND_PLUGINS__SCRIPTED__SCRIPT", str(script))
    monkeypatch.setenv("COLUMNS", "80")
    command = sideband_commands()
    parser = ArgumentParser()
    command.configure(parser)

    def run(*words):
        assert command.run(parser.parse_args(["list", *words])) == 0
        return capsys.readouterr().out

    return run


def test_model_is_listed_with_its_window_and_prices(models):
    (line,) = [line for line in models().splitlines() if line.startswith("scripted:small")]
    assert line.split()[1:4] == ["8,000", "0.00", "0.00"]


def test_configured_prices_and_aliases_are_shown(models, monkeypatch):
    monkeypatch.setenv(
        "SIDEBAND_PLUGINS__LLM",
        '{aliases = {fast = "scripted:small"}, prices = {"scripted:small" = {input = 0.003, output = 15}}}',
    )
    text = models()
    assert "  0.003  15.00" in text
    assert "\n  fast: scripted:small" in text


def test_long_name_is_not_cut_and_all_other_lines_fit_the_terminal(models):
    lines = models().splitlines()
    assert f"scripted:{LONG}" in lines
    assert max(len(line) for line in lines if LONG not in line) <= 80


def test_json_output_contains_all_models(models):
    data = json.loads(models("--json", "--provider", "scripted"))
    assert [one["name"] for one in data["models"]] == [f"scripted:{LONG}", "scripted:small"]
    assert data["models"][1]["context_window"] == 8_000


def test_unusable_provider_is_listed_with_its_problem(models, monkeypatch):
    monkeypatch.setenv("SIDEBAND_PLUGINS__SCRIPTED__SCRIPT", "missing.toml")
    text = models()
    assert text.startswith("no models\n")
    assert "unavailable providers:\n  scripted: " in text
    assert "missing.toml" in text


def test_without_models_three_ways_to_set_one_up_are_shown(models, monkeypatch):
    monkeypatch.setenv("SIDEBAND_POLICY__ONLY", '["op.llm", "store.*"]')
    text = models()
    assert all(f"\n  {number}. " in text for number in (1, 2, 3))
    assert max(map(len, text.splitlines())) <= 80


def test_unknown_provider_is_an_error(models):
    with pytest.raises(ProviderUnknown):
        models("--provider", "unknown")
