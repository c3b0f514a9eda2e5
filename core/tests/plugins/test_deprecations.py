import pytest
from sideband import __version__
from sideband.plugins import Deprecation, SidebandDeprecationWarning
from sideband.plugins._deprecations import overdue, warn_deprecated

SAY = Deprecation(what="ctx.say", since="1.2", removed_in="2.0", instead="ctx.progress")


def test_no_deprecation_is_overdue():
    assert overdue(__version__) == ()


@pytest.mark.parametrize(("version", "due"), [("1.9.9", False), ("2.0.dev1", True), ("2.0", True), ("10.0", True)])
def test_deprecation_is_overdue_from_the_version_that_removes_it(version, due):
    assert bool(overdue(version, [SAY])) is due


def test_warning_names_the_replacement_and_points_at_the_caller():
    def say():
        warn_deprecated(SAY)

    with pytest.warns(SidebandDeprecationWarning, match=r"since 1\.2 .* in 2\.0; use ctx\.progress") as caught:
        say()
    assert caught[0].filename == __file__
