"""Things that are found: in the modules of a folder, and in installed packages."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from audio_compositionality.support.discovery import Registry
from audio_compositionality.support.errors import AudioCompositionalityError

BROKEN = """
from audio_compositionality.support.errors import AudioCompositionalityError

raise AudioCompositionalityError("there is no metric 'nothing'")
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with two things, one of which has further names, a module without any, and a folder."""
    folder = tmp_path / "some_things"
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "inner" / "__init__.py").touch()
    (folder / "bell.py").write_text('THING = ("bell", "gong")\n')
    (folder / "drum.py").write_text('THING = ("drum",)\n')
    (folder / "helper.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield "some_things"
    for name in [name for name in sys.modules if name.partition(".")[0] == "some_things"]:
        del sys.modules[name]


def registry_of(package: str | None, group: str = "absent", **options) -> Registry[tuple[str, ...]]:
    return Registry(package, "THING", group, lambda thing: thing[0], further=lambda thing: thing[1:], **options)


def imported() -> set[str]:
    return {name.partition(".")[2] for name in sys.modules if name.startswith("some_things.")}


@pytest.fixture
def points(monkeypatch):
    """Entry points of the group ``group``, and the names of those that are loaded."""
    loaded = []

    def point(name, *names):
        return SimpleNamespace(name=name, load=lambda: loaded.append(name) or names)

    given = [point("x", "mine", "ours"), point("y", "theirs")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: given if group == "group" else [])
    return loaded


def test_of_a_folder_modules_are_imported_until_one_has_the_thing(package):
    registry = registry_of(package)
    assert registry.find("gong") == ("bell", "gong")
    assert imported() == {"bell"}
    assert registry_of(package, first="drum").find("drum") == ("drum",)
    assert imported() == {"bell", "drum"}
    assert registry.find("nothing") is None
    assert registry.all() == {"bell": ("bell", "gong"), "drum": ("drum",)}
    assert registry.names() == ("bell", "drum")


def test_of_things_that_are_named_by_their_files_the_names_are_known_without_them(package):
    registry = registry_of(package, helpers=["helper"])
    assert registry.names() == ("bell", "drum")
    assert registry_of(package, helpers=["helper"], listed=[("rattle",)]).names() == ("rattle", "bell", "drum")
    assert imported() == set()
    assert registry.find("drum") == ("drum",)
    assert imported() == {"drum"}
    assert registry.find("helper") is None
    registry.add(("drum", "of this process"))
    assert registry.find("drum") == ("drum", "of this process")
    registry.add(("cymbal",))
    assert registry.names() == ("bell", "drum", "cymbal") == tuple(registry.all())


def test_a_module_that_is_incomplete_leaves_the_others_and_is_an_error_where_it_is_asked_for(package, tmp_path):
    (tmp_path / package / "broken.py").write_text(BROKEN)
    registry = registry_of(package, helpers=["helper"])
    with pytest.warns(UserWarning, match=r"some_things\.broken is left out: there is no metric 'nothing'"):
        assert list(registry.all()) == ["bell", "drum"]
    with pytest.raises(AudioCompositionalityError, match="there is no metric 'nothing'"):
        registry.find("broken")


def test_things_of_installed_packages_are_found_and_do_not_displace_ours(points):
    registry = registry_of(None, "group", listed=[("theirs", "in fact ours")])
    registry.add(("b", "c"))
    assert registry.all() == {"theirs": ("theirs", "in fact ours"), "mine": ("mine", "ours"), "b": ("b", "c")}
    assert registry.find("theirs") == ("theirs", "in fact ours")
    assert registry.find("c") == ("b", "c")


def test_of_entry_points_that_of_the_name_is_loaded_first(points):
    registry = registry_of(None, "group")
    assert registry.find("ours") == ("mine", "ours")
    assert points == ["x"]
    points.clear()
    assert registry.find("y") is None
    assert points == ["y", "x"]


def test_an_entry_point_that_cannot_be_loaded_is_named(monkeypatch, package):
    def broken():
        raise ImportError("no module named nowhere")

    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [SimpleNamespace(name="x", load=broken)])
    registry = registry_of(package, "group")
    assert registry.find("bell")[0] == "bell"
    message = r"entry point 'x' of the group group cannot be loaded .*nowhere"
    for ask in (registry.all, lambda: registry.find("nothing")):
        with pytest.raises(AudioCompositionalityError, match=message):
            ask()
