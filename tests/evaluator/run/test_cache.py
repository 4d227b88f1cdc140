"""Stores of the outputs of models."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import warnings
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from audio_compositionality.encoders.base import ModelCard
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.evaluator.run.cache import (
    AnswerCache,
    AnswerShard,
    CacheError,
    CacheKey,
    EmbeddingCache,
    EmbeddingShard,
)

from ..damaged import check_flips, flipped

KEY = CacheKey(
    recipe="a_tre",
    fingerprint="f" * 64,
    rows_digest="d" * 64,
    kind="clips",
    model_id="org/model@layer=3",
    revision="abc",
    weights_sha256="e" * 64,
    output_dim=5,
    layer=3,
    pooling=None,
    precision="float32",
    front_end_version=1,
)
IDS = [f"scene-{number}/audio" for number in range(150)]


def embeddings(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 5)).astype(np.float32)


def filled(root: Path | None, errors: dict[int, str] | None = None) -> EmbeddingCache:
    """A store of 150 clips in three shards; the last has the errors given."""
    store = EmbeddingCache(root, KEY, IDS)
    for shard in range(store.num_shards):
        content = EmbeddingShard(embeddings(len(store.items(shard)), shard), (errors or {}) if shard == 2 else {})
        content.embeddings[list(content.errors)] = np.nan
        store.write(shard, content)
    return store


def test_the_digest_is_sha256_of_sorted_json_without_spaces() -> None:
    text = (
        '{"fingerprint":"' + "f" * 64 + '","front_end_version":1,"kind":"clips","layer":3,'
        '"model_id":"org/model@layer=3","output_dim":5,"pooling":null,"precision":"float32","recipe":"a_tre",'
        '"revision":"abc","rows_digest":"' + "d" * 64 + '","schema_version":4,"weights_sha256":"' + "e" * 64 + '"}'
    )
    assert KEY.digest == hashlib.sha256(text.encode()).hexdigest()


def test_every_part_of_the_key_makes_another_store(tmp_path: Path) -> None:
    folders = {EmbeddingCache(tmp_path, KEY, IDS).folder}
    for field in fields(KEY):
        value = getattr(KEY, field.name)
        other = value + 1 if isinstance(value, int) else f"{value}x"
        folders.add(EmbeddingCache(tmp_path, replace(KEY, **{field.name: other}), IDS).folder)
    assert len(folders) == 1 + len(fields(KEY)) == 13


def test_the_key_of_a_card() -> None:
    options = EncoderOptions(layer=2, pooling="max", precision="float16", compile=True)
    card = ModelCard("m", "v1", 16_000, 5, weights_sha256="a" * 64, front_end_version=7, options=options)
    key = CacheKey.of(card, "scenes", "f", "d", "texts")
    assert key == CacheKey("scenes", "f", "d", "texts", "m", "v1", "a" * 64, 5, 2, "max", "float16", 7)


def test_the_folder_is_readable_without_the_project(tmp_path: Path) -> None:
    store = filled(tmp_path, {3: "is silent"})
    assert store.folder == tmp_path / "org__model@layer=3" / f"a_tre-clips-{KEY.digest[:16]}"
    names = sorted(path.name for path in store.folder.iterdir())
    assert names == [*(f"0000{i}-of-00003.safetensors" for i in range(3)), "key.json"]
    assert json.loads((store.folder / "key.json").read_text())["revision"] == "abc"
    assert (load_file(store.path(0))["embeddings"] == embeddings(64, 0)).all()


@pytest.mark.parametrize("on_disk", [True, False])
def test_embeddings_come_back_bit_for_bit_in_the_order_of_the_clips(tmp_path: Path, on_disk: bool) -> None:
    """A clip without one as NaN, with its reason."""
    found = filled(tmp_path if on_disk else None, {3: "NaN of the model"}).load()
    order = [number for shard in range(3) for number in filled(None).numbers(shard)]
    assert sorted(order) == list(range(150))
    expected = np.empty((150, 5), np.float32)
    expected[order] = np.concatenate([embeddings(64, 0), embeddings(64, 1), embeddings(22, 2)])
    expected[order[131]] = np.nan
    assert found.embeddings.dtype == np.float32
    assert found.embeddings.tobytes() == expected.tobytes()
    assert found.errors == {order[131]: "NaN of the model"}
    assert [*tmp_path.iterdir()] == ([tmp_path / "org__model@layer=3"] if on_disk else [])


def test_items_are_in_the_order_of_hashes_within_blocks_of_512() -> None:
    ids = [f"scene-{number}/audio" for number in range(1_100)]
    store = EmbeddingCache(None, KEY, ids)
    order = [number for shard in range(store.num_shards) for number in store.numbers(shard)]
    assert [number // 512 for number in order] == sorted(number // 512 for number in order)
    assert sorted(order) == list(range(1_100))
    # Whoever counts learns nothing of a place in rows of 8 clips.
    places = np.bincount([8 * (count % 8) + number % 8 for count, number in enumerate(order)], minlength=64)
    assert ((places - 1_100 / 64) ** 2).sum() / (1_100 / 64) < 63 + 4 * np.sqrt(2 * 63)
    other = EmbeddingCache(None, replace(KEY, fingerprint="e" * 64), ids)
    same = EmbeddingCache(None, replace(KEY, model_id="another"), ids)
    assert other.numbers(0) != store.numbers(0) == same.numbers(0)


@pytest.mark.parametrize("on_disk", [True, False])
def test_a_shard_is_finished_only_after_its_check(tmp_path: Path, on_disk: bool) -> None:
    store = EmbeddingCache(tmp_path if on_disk else None, KEY, IDS)
    content = EmbeddingShard(embeddings(64), {})
    store.write(1, content, checked=False)
    assert (store.has(1), store.awaits_check(1)) == (False, True)
    assert (store.read(1).embeddings == content.embeddings).all()
    store.accept(1)
    assert (store.has(1), store.awaits_check(1)) == (True, False)
    assert (store.read(1).embeddings == content.embeddings).all()
    store.write(2, EmbeddingShard(embeddings(22), {}), checked=False)
    for _ in range(2):
        store.discard(1)
        store.discard(2)
        assert not any(store.has(shard) or store.awaits_check(shard) for shard in range(3))


def test_nothing_is_written_before_the_first_shard(tmp_path: Path) -> None:
    store = EmbeddingCache(tmp_path, KEY, IDS)
    assert not store.has(0)
    assert not [*tmp_path.iterdir()]
    with pytest.raises(CacheError, match=r"00000-of-00003\.safetensors does not exist"):
        store.load()


@pytest.fixture
def store(tmp_path: Path) -> EmbeddingCache:
    return filled(tmp_path, {3: "is silent"})


ANSWERS = replace(KEY, kind="answers", output_dim=None)


@pytest.mark.parametrize("kind", ["embeddings", "embeddings that wait", "answers", "key"])
def test_a_file_of_which_a_byte_has_changed_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    one = EmbeddingCache(tmp_path, KEY, IDS[:6])
    one.write(0, EmbeddingShard(embeddings(6), {3: "is silent"}), checked=kind != "embeddings that wait")
    if kind == "answers":
        one = AnswerCache(tmp_path, ANSWERS, IDS[:2])
        one.write(0, AnswerShard(("A", "ü"), {}))
    (path,) = one.folder.glob("key.json" if kind == "key" else "00000*")

    def read(content: bytes) -> None:
        path.write_bytes(content)
        type(one)(tmp_path, one.key, one.ids).load()

    expected = (
        r"(key\.json is damaged|holds outputs of another model)" if kind == "key" else r"00000-of-00001.*is damaged"
    )
    check_flips(path.read_bytes(), read, rf"{expected}.*delete")


def test_answers_that_wait_are_asked_again_where_a_byte_has_changed(tmp_path: Path) -> None:
    one = AnswerCache(tmp_path, ANSWERS, IDS[:4])
    one.add(0, [(0, ("A", {"tokens": 3}))])
    one.add(0, [(2, ("ü", {}))])
    (path,) = one.folder.glob("*.begun")
    content = path.read_bytes()
    whole = {0: ("A", {"tokens": 3}), 2: ("ü", {})}
    assert one.begun(0) == whole
    for place, other in enumerate(flipped(content)):
        path.write_bytes(other)
        # Line ends are not sealed: a line that another byte begins or ends is none.
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            left = one.begun(0)
        assert left.items() <= whole.items()
        assert [bool(said)] == [left != whole], place
        assert all("is left out, and its question is asked again" in str(one.message) for one in said)
    other = AnswerCache(tmp_path, replace(ANSWERS, revision="2"), IDS[:4])
    other.add(0, [(0, ("A", {}))])
    (elsewhere,) = other.folder.glob("*.begun")
    path.write_bytes(elsewhere.read_bytes())
    with pytest.warns(UserWarning, match="line 2 of .* is left out"):
        assert one.begun(0) == {}


class TestDamage:
    def refused(self, store: EmbeddingCache, message: str) -> None:
        with pytest.raises(CacheError, match=rf"00001-of-00003\.safetensors is damaged.*{message}.*delete it, or"):
            store.load()

    @pytest.mark.parametrize("kept", [0, 3, 100, 1_000])
    def test_a_shard_that_was_cut_off(self, store: EmbeddingCache, kept: int) -> None:
        path = store.path(1)
        path.write_bytes(path.read_bytes()[:kept])
        self.refused(store, "")

    def test_a_shard_of_another_key_or_in_anothers_place(self, store: EmbeddingCache, tmp_path: Path) -> None:
        other = EmbeddingCache(tmp_path, replace(KEY, pooling="max"), IDS)
        other.write(1, store.read(1))
        for path in (other.path(1), store.path(0)):
            store.path(1).write_bytes(path.read_bytes())
            self.refused(store, "of another key or of other clips")

    def test_values_that_are_not_finite(self, store: EmbeddingCache) -> None:
        vectors = embeddings(64)
        vectors[3, 2] = np.inf
        store.write(1, EmbeddingShard(vectors, {}))
        self.refused(store, "NaN or infinite")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda text: "", r"key\.json is damaged"),
            (lambda text: "{", r"key\.json is damaged"),
            (lambda text: "\xff", r"key\.json is damaged"),
            (lambda text: "[]", "holds outputs of another model"),
            (
                lambda text: json.dumps({**json.loads(text), "layer": 4, "precision": "float16"}),
                r"holds outputs of another model, of other data or settings \(different: layer, precision\); delete",
            ),
        ],
    )
    def test_a_key_that_is_none_or_another(self, store: EmbeddingCache, tmp_path: Path, change, message) -> None:
        path = store.folder / "key.json"
        path.write_bytes(change(path.read_text()).encode("latin-1"))
        with pytest.raises(CacheError, match=message):
            EmbeddingCache(tmp_path, KEY, IDS)

    def test_a_file_where_the_folder_should_be(self, tmp_path: Path) -> None:
        folder = EmbeddingCache(tmp_path, KEY, IDS).folder
        folder.parent.mkdir()
        folder.write_text("")
        with pytest.raises(CacheError, match="is a file; give another folder"):
            EmbeddingCache(tmp_path, KEY, IDS)


@pytest.mark.parametrize("on_disk", [True, False])
def test_answers_come_back_in_the_order_of_the_prompts_with_what_is_known_of_them(tmp_path, on_disk) -> None:
    facts = tuple({"log_likelihoods": [-0.1, None, item / 3]} for item in range(16))
    store = AnswerCache(tmp_path if on_disk else None, ANSWERS, IDS[:18])
    answers = tuple(f"(A) ü {item}" for item in range(18))
    store.write(1, AnswerShard(answers[16:], {1: "is silent"}))
    store.write(0, AnswerShard(answers[:16], {}, facts))
    assert store.load() == AnswerShard(answers, {17: "is silent"}, (*facts, {}, {}))
    assert not on_disk or b"facts" not in store.path(1).read_bytes()


def test_another_shape_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"shard 2 has shape \(64, 5\), but must have \(22, 5\)"):
        EmbeddingCache(tmp_path, KEY, IDS).write(2, EmbeddingShard(embeddings(64), {}))


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    store = filled(tmp_path)
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    dead = store.folder / f".00000-of-00003.safetensors.{platform.node()}.{process.pid}.partial"
    alive = store.folder / f".00000-of-00003.safetensors.{platform.node()}.{os.getpid()}.partial"
    elsewhere = store.folder / f".00000-of-00003.safetensors.another-machine.{process.pid}.partial"
    for path in (dead, alive, elsewhere):
        path.write_bytes(b"half")
    assert EmbeddingCache(tmp_path, KEY, IDS).load().errors == {}
    assert [path.exists() for path in (dead, alive, elsewhere)] == [False, True, True]


@pytest.mark.parametrize("name", ["..", "../../etc", "/root", "a/../b", ".", ""])
def test_no_name_of_a_model_leads_out_of_the_root(tmp_path: Path, name: str) -> None:
    folder = EmbeddingCache(tmp_path, replace(KEY, model_id=name), IDS).folder
    assert len(folder.resolve().relative_to(tmp_path.resolve()).parts) == 2
