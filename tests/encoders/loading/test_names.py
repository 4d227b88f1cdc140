"""The grammar of model names: what each form is taken for, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.controls import CONTROLS
from audio_compositionality.encoders.loading import listing
from audio_compositionality.encoders.loading.listing import ANY_OTHER, adapters, architectures, named_models
from audio_compositionality.encoders.loading.names import (
    TOWER,
    absolute_name,
    check_name,
    hub_id_of,
    is_public,
    is_twin,
    list_models,
    parse_name,
    split_detector,
)
from audio_compositionality.encoders.loading.registry import has_twins, load_model
from audio_compositionality.encoders.loading.twins import TWINS
from audio_compositionality.support.discovery import Registry

DOCS = Path(__file__).parents[3] / "docs" / "how-to/models.md"


FORMS = {
    "listed": ("log-mel-statistics", "oracle", "whisper-base=/models/whisper", "panns-cnn14=C:/models/Cnn14.pth"),
    "adapter": (
        *("hear:module", "hear:module:weights.pt", "xares:a/b.py:Mine", "mteb:org/model"),
        *("detected-as-text:cascade:first", "detected-as-text:a/b.py:Mine:endpoint:m@http://h/v1"),
    ),
    "endpoint": ("endpoint:org/m@http://localhost:8000/v1",),
    "file": ("a/b.py:Mine", "b.py:Mine", "a/b.py"),
    "hub": ("org/model", "org/model.v1-x_y"),
    "unknown": ("", "whisper-base=", "wisper-base=/models", "a/b/c", "other:model"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("front", ["", "noise-audio:shuffled:"])
def test_what_a_model_is_by_its_name(form: str, front: str) -> None:
    for model in FORMS[form]:
        if form == "endpoint" and is_twin(front + "x"):
            with pytest.raises(ModelError, match="'endpoint:org/m@localhost:8000' runs on a server, so this package"):
                parse_name(front + model)
            continue
        name = parse_name(front + model)
        assert (name.form, name.model, name.front) == (form, model, front)


names = st.tuples(
    st.lists(st.sampled_from(sorted(CONTROLS)), max_size=3),
    st.sampled_from(["", *TWINS]),
    st.booleans(),
    st.sampled_from(["random", "whisper-base=/x", "org/model", "hear:m", "a.py:B", "nothing"]),
)


@given(parts=names)
def test_a_name_is_put_together_of_what_it_is_taken_apart_into(
    parts: tuple[list[str], str, bool, str],
) -> None:
    controls, twin, is_tower, model = parts
    text = "".join(f"{one}:" for one in [*controls, *filter(None, [twin])]) + TOWER * is_tower + model
    name = parse_name(text)
    assert [kind.name for kind in name.controls] == controls
    assert ("" if name.twin is None else name.twin.name) == twin
    assert (name.is_tower, name.model, name.front + name.model) == (is_tower, model, text)
    assert is_twin(text) == bool(twin)


def test_a_folder_is_one_before_it_is_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "org" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert parse_name("untrained:org/model").form == "folder"
    assert absolute_name("untrained:org/model") == f"untrained:{tmp_path}/org/model"
    assert absolute_name("whisper-base=org/model") == f"whisper-base={tmp_path}/org/model"
    assert absolute_name("reversed-audio:whisper-base") == "reversed-audio:whisper-base"
    with pytest.raises(ModelError, match=r"folder 'org/model' holds no config\.json"):
        check_name("org/model")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("untrained:shuffled:whisper-base", "'untrained:shuffled:whisper-base' is a twin of a twin"),
        ("untrained:noise-audio:whisper-base", "is a twin of a control; .* 'noise-audio:untrained:whisper-base'"),
        ("noise-audio:wisper-base", "unknown model 'wisper-base'; did you mean 'whisper-base'"),
        ("untrained:wisper-base", "unknown model 'untrained:wisper-base'; did you mean 'untrained:whisper-base'"),
        ("untraned:whisper-base", "unknown model 'untraned:whisper-base'; did you mean 'untrained:whisper-base'"),
        ("untraned:org/model", r"did you mean 'untrained:org/model'\?"),
        ("noise-adio:untrained:wisper-base", "did you mean 'noise-audio:untrained:whisper-base'"),
        ("tower:untrained:whisper-base", r"did you mean 'untrained:whisper-base'\?"),
        ("tower:untrained:org/model", r"did you mean 'untrained:tower:org/model' or 'untrained:org/model'\?"),
        ("log-mel", "unknown model 'log-mel'; did you mean 'log-mel-statistics'"),
        *(
            (name, f"unknown model '{name}'; `audio-compositionality models` lists the known names")
            for name in ("", "untrained:")
        ),
        *((name, f"there is no folder '{name}'") for name in ("/no/such/folder", "./no-such-folder")),
        ("no/such/folder", "there is no folder 'no/such/folder', and it is not a Hub id"),
        ("nothing.py:Mine", r"'nothing\.py:Mine': there is no file 'nothing\.py'"),
        ("tower:whisper-base", "'tower:whisper-base': tower: goes in front of the folder or Hub id of an audio"),
        ("tower:hear:module", "'hear:module' is neither"),
        ("tower:endpoint:m@http://h/v1", "'endpoint:m@h' runs on a server, so this package cannot take a part of it"),
        ("endpoint:m@ftp://h/v1", r"'endpoint:m@ftp://…': the URL must begin with http"),
        ("detected-as-text:cascade", "expected detected-as-text:DETECTOR"),
    ],
)
def test_what_is_refused(name: str, words: str) -> None:
    for use in (check_name, load_model):
        with pytest.raises(ModelError, match=words):
            use(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("shuffled:random", "'shuffled:random': 'random' has no weights"),
        ("shuffled:hear:module", "made by its own code, so this package cannot shuffle its weights"),
        ("untrained:hear:module", "made by its own code, so this package cannot give it fresh weights"),
        ("sorted-words:downsample", "'sorted-words:downsample': 'downsample' embeds no text, so there is no text to"),
        ("without-text:log-mel-statistics", "embeds no text"),
        ("events-as-text:oracle", "'oracle' reads labels"),
    ],
)
def test_what_is_refused_when_it_is_loaded(name: str, words: str) -> None:
    check_name(name)
    with pytest.raises(ModelError, match=words):
        load_model(name)


def test_a_detector_and_a_language_model() -> None:
    assert split_detector("cascade") == ("cascade", "")
    for detector in ("cascade", "a/b.py:Mine"):
        for model in ("org/model", "endpoint:m@http://h:8000/v1"):
            assert split_detector(f"{detector}:{model}") == (detector, model)


def test_repositories_and_names_that_mean_the_same_anywhere() -> None:
    assert hub_id_of("org/model") == "org/model"
    assert hub_id_of("whisper-base") == "openai/whisper-base"
    assert [hub_id_of(name) for name in ("random", "panns-cnn14", "untrained:whisper-base", "/a/b")] == [None] * 4
    assert all(map(is_public, ("random", "untrained:whisper-base", "noise-audio:org/model", "tower:org/model")))
    assert not any(map(is_public, ("whisper-base=/models", "/models/a", "a/b.py:Mine", "nothing")))


def test_the_page_of_the_docs_has_every_form_once() -> None:
    page = DOCS.read_text("utf-8")
    names = page[page.index("## Names") : page.index("## Text")]
    for front in (*CONTROLS, *TWINS):
        assert names.count(f"| `{front}:` |") == 1, front
    for form in (
        "endpoint:",
        "detected-as-text:",
        "hear:",
        "xares:",
        "mteb:",
        "FILE.py:CLASS",
        "LISTED=PATH",
        "ORG/NAME",
    ):
        assert form in names, form


# Where models are found, and that nothing heavy is imported to list them


ONE_FILE_FAMILY = """
from audio_compositionality.encoders.base import StagedEncoder
from audio_compositionality.encoders.loading.listing import ModelListing
from audio_compositionality.encoders.base import ModelCard


class Loudness(StagedEncoder):
    card = ModelCard("loudness", "v1", 8_000, 1, paradigm="by hand", licence="MIT")

    def _extract_features(self, clips):
        return clips

    def _run_model(self, features):
        return features.std(axis=1, keepdims=True)


MODELS = (ModelListing("loudness", 1, 8_000, "by hand", "MIT", "how loud a clip is", make=Loudness),)
"""


def test_listing_and_a_baseline_import_neither_torch_nor_transformers() -> None:
    code = """
import sys
from audio_compositionality.encoders.loading.registry import has_twins, load_model
from audio_compositionality.encoders.loading.names import list_models
names = [listing.name for listing in list_models()]
load_model("downsample").embed([[0.0] * 32_000], 32_000)
assert has_twins("whisper-base")
heavy = {"torch", "transformers", "librosa", "huggingface_hub", "httpx2"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_family_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "fake_families"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "loudness.py").write_text(ONE_FILE_FAMILY)
    (package / "helper.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry("fake_families", "MODELS", "no.such.group", lambda models: models[0].name)
    monkeypatch.setattr(listing, "_models", registry)
    assert [(entry.name, entry.is_baseline) for entry in list_models()] == [("loudness", False)]
    model = load_model("loudness")
    np.testing.assert_allclose(model.embed([[0.5, -0.5]], 8_000), [[0.5]])
    assert not has_twins("loudness")


def test_every_family_says_what_it_handles() -> None:
    assert {"hear", "xares", "mteb"} <= set(adapters())
    assert {ANY_OTHER, "whisper", "clap", "audio-spectrogram-transformer", "mimi", "qwen2_audio"} <= set(
        architectures()
    )
    names = list(named_models())
    assert names[:3] == ["downsample", "random", "log-mel-statistics"]
    assert len(set(names)) == len(names)


def test_the_authors_beats_is_passed_as_a_file() -> None:
    with pytest.raises(ModelError, match=r"get BEATs_iter3\.pt from https://github\.com.*beats-iter3=/path/to/BEATs"):
        load_model("beats-iter3")
