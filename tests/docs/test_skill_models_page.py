"""The examples of the page on models, services and checkpoints work."""


def test_examples_work(tmp_path, walk):
    walk("docs/skill-models.md", tmp_path, SIDEBAND_POLICY__ISOLATION="none")
