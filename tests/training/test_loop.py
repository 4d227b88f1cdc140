import json
import math
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.support.checked_files import NO_DIGEST, sealed
from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.training.log import EVALUATIONS, STEP_COLUMNS, STEPS, log_rows
from audio_compositionality.training.loop import BEST, learning_rate_at, make_optimizer
from audio_compositionality.training.model import open_towers
from audio_compositionality.training.run_folder import model_card, read_record
from audio_compositionality.training.running import finish
from audio_compositionality.training.settings import Stage, TrainingError
from audio_compositionality.training.state import (
    FILE,
    FILE_BEFORE,
    FOLDER,
    Position,
    TrainingState,
    find_checkpoint,
    load_checkpoint,
    save_checkpoint,
)

from .small_training import small_settings, small_trainer

SCRIPT = Path(__file__).parent / "small_training.py"


class StoppedError(Exception):
    pass


def stop_at(step):
    def on_step(number):
        if number == step:
            raise StoppedError

    return on_step


def read_log(path):
    return log_rows(path.read_bytes().decode())


def logged(out):
    """Everything in the log but seconds and rates."""
    columns = ("step", "stage", "loss", "scale", "gradient_norm")
    return [[row[name] for name in columns] for row in read_log(out / STEPS)]


def weights(trainer):
    """As they are stored."""
    return {name: tensor.detach().clone() for name, tensor in trainer.towers.model.state_dict().items()}


GENTLE = {"stages": "hard:3", "learning_rate": 1e-4}
"""Adam divides by the size of the gradient, so that rounding of one that is nearly 0 is seen."""


def is_equal(first, second):
    return all(torch.equal(first[name], second[name]) for name in first.keys() | second.keys())


def farthest(first, second):
    """Largest difference of a weight, but for biases of keys: attention does not depend on them, so that their gradient
    is nothing but rounding, of whose sign Adam makes steps."""
    names = [name for name in first if not name.endswith("key.bias")]
    return max(float((first[name].float() - second[name].float()).abs().max()) for name in names)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing has stopped: its folder and the weights at its end."""
    out = tmp_path_factory.mktemp("whole") / "run"
    trainer = small_trainer(out)
    trainer.run()
    finish(trainer)
    return SimpleNamespace(out=out, weights=weights(trainer), position=trainer.position)


def test_the_log_has_every_step(whole):
    rows = read_log(whole.out / STEPS)
    assert tuple(rows[0]) == STEP_COLUMNS
    assert [int(row["step"]) for row in rows] == list(range(1, 8))
    assert [row["stage"] for row in rows] == ["contrastive"] * 2 + ["hard"] * 3 + ["modular"] * 2
    assert [int(row["stage_step"]) for row in rows] == [1, 2, 1, 2, 3, 1, 2]
    stages = small_settings().stages
    assert [float(row["learning_rate"]) for row in rows[2:5]] == [
        learning_rate_at(stages[1], step) for step in range(3)
    ]
    assert all(float(row["loss"]) > 0 and float(row["gradient_norm"]) > 0 for row in rows)


@pytest.mark.parametrize("step", [1, 6])
def test_a_run_that_was_stopped_goes_on_to_the_same_weights_bit_for_bit(whole, tmp_path, step):
    with pytest.raises(StoppedError):
        small_trainer(tmp_path, on_step=stop_at(step)).run()
    found = find_checkpoint(tmp_path, small_trainer(tmp_path).owner)
    assert found is not None
    # At most the steps since the last state are lost.
    assert step - 2 <= found.position.total <= step
    # A log that was changed is written anew.
    (tmp_path / STEPS).write_bytes((tmp_path / STEPS).read_bytes().replace(b"1", b"2"))
    trainer = small_trainer(tmp_path)
    assert trainer.run().resumed == found.position.total
    assert is_equal(weights(trainer), whole.weights)
    assert logged(tmp_path) == logged(whole.out)


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_to_the_same_weights_bit_for_bit(whole, tmp_path):
    killed = subprocess.run([sys.executable, SCRIPT, tmp_path, "{}", "5"], env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert killed.returncode == -signal.SIGKILL
    trainer = small_trainer(tmp_path)
    assert trainer.run().resumed == 4
    assert is_equal(weights(trainer), whole.weights)


@pytest.mark.slow
def test_two_processes_make_the_losses_and_the_weights_of_one(tmp_path):
    """Fresh ones, in which transformers does not know the configuration of small towers before they are opened."""
    open_towers("tiny").save(tmp_path / "init")
    settings = {**GENTLE, "init": str(tmp_path / "init"), "neighbours": 2}
    single = small_trainer(tmp_path / "one", **settings)
    single.run()
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command = [*launcher, SCRIPT, tmp_path / "two", json.dumps(settings)]
    process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, start_new_session=True)
    try:
        assert process.wait(timeout=300) == 0
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    losses = [[float(row["loss"]) for row in read_log(tmp_path / name / STEPS)] for name in ("one", "two")]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)
    stored = load_file(tmp_path / "two" / "model" / "model.safetensors")
    assert farthest(stored, weights(single)) < 1e-5


def test_the_folder_is_a_model_with_its_record_and_card(whole):
    record = read_record(whole.out)
    assert record["finished"]
    assert record["steps"] == 7
    assert record["fingerprint"] == "0" * 64
    assert [stage["steps"] for stage in record["stages"]] == [2, 3, 2]
    assert len(record["losses"]["loss"]) == 7
    assert record["libraries"]["torch"] == torch.__version__
    assert record["settings"] == small_settings().values()
    model = load_model(str(whole.out), device="cpu")
    assert model.embed_text(["a bell"]).shape == (1, 128)
    stored = load_file(whole.out / "model.safetensors")
    assert is_equal(stored, {name: whole.weights[name] for name in stored})
    assert set(whole.weights) - set(stored) <= {
        "text_model.embeddings.position_ids",
        "text_model.embeddings.token_type_ids",
    }
    card = (whole.out / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: audio-compositionality\n")
    assert "| hard | 3 |" in card
    assert "`audio-compositionality train --settings settings.yaml --out DIR` trains it again" in card
    of_program = model_card("x", small_settings(accumulate=3), record | {"data_arguments": None}, 128, is_clap=False)
    assert "of 12 rows, seed" in of_program
    assert "opened by a program" in of_program
    assert "trains it again" not in of_program


def test_another_training_in_the_folder_is_refused_with_the_difference(whole):
    with pytest.raises(TrainingError, match="seed is 4 instead of 0"):
        small_trainer(whole.out, seed=4).run()
    other = small_trainer(whole.out)
    other.facts = SimpleNamespace(source="new", fingerprint="1" * 64)
    with pytest.raises(TrainingError, match=r"the data \(new\) have the fingerprint 111111111111 instead of 0"):
        other.run()
    # The weights do not depend on these.
    assert small_trainer(whole.out, checkpoint_every=1, chunk=2).run().resumed == 7


def test_a_folder_that_holds_something_else_is_refused(tmp_path):
    def on_step(number):
        with pytest.raises(TrainingError, match="another process is training"):
            small_trainer(tmp_path / "run", stages="contrastive:1").run()

    small_trainer(tmp_path / "run", stages="contrastive:1", on_step=on_step).run()
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(TrainingError, match=r"holds run, but no training"):
        small_trainer(tmp_path).run()
    with pytest.raises(TrainingError, match="is a file"):
        small_trainer(tmp_path / "thesis.tex").run()


def flip(path, place, bit=0x40):
    """Change a bit of a file, in the exponent of a weight where the place is one from the end of its floats."""
    content = bytearray(path.read_bytes())
    content[place] ^= bit
    path.write_bytes(content)


def exponent_of(path, name):
    """The place of the byte with most of the exponent of the first number of a tensor."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    return 8 + length + json.loads(content[8 : 8 + length])[name]["data_offsets"][0] + 3


def test_a_damaged_state_never_makes_another_model(whole, tmp_path):
    """Killed behind step 5, one bit of the exponent flipped, the same command: a line, and the same model."""
    with pytest.raises(StoppedError):
        small_trainer(tmp_path, on_step=stop_at(5)).run()
    path = tmp_path / FOLDER / FILE
    flip(path, exponent_of(path, "weight/model.logit_scale"))
    trainer = small_trainer(tmp_path)
    with pytest.warns(UserWarning, match=r"state\.safetensors, cannot be used .*from the previous one, of step 2"):
        assert trainer.run().resumed == 2
    assert is_equal(weights(trainer), whole.weights)
    assert logged(tmp_path) == logged(whole.out)
    # Nothing damaged is left beside the whole ones.
    assert find_checkpoint(tmp_path, trainer.owner).position.total == 7
    path.unlink()
    with pytest.warns(UserWarning, match="is missing: it resumes from the previous one"):
        assert find_checkpoint(tmp_path, trainer.owner).path.name == FILE_BEFORE


def test_the_state_of_another_training_is_refused(tmp_path):
    """Whole, and of a model of the same shape: only its settings differ."""
    for name, seed in (("one", 1), ("other", 2)):
        with pytest.raises(StoppedError):
            small_trainer(tmp_path / name, on_step=stop_at(5), seed=seed).run()
    for file in (FILE, FILE_BEFORE):
        shutil.copy(tmp_path / "other" / FOLDER / file, tmp_path / "one" / FOLDER / file)
    with pytest.raises(TrainingError, match=r"cannot read the state .* a training with other settings or"):
        small_trainer(tmp_path / "one", seed=1).run()


def test_a_model_without_its_record_is_not_loaded(tmp_path):
    trainer = small_trainer(tmp_path, stages="contrastive:2")
    trainer.run()
    finish(trainer)
    (tmp_path / "training.json").unlink()
    flip(tmp_path / "model.safetensors", -1)
    for name in (str(tmp_path), f"untrained:{tmp_path}"):
        with pytest.raises(ModelError, match=r"the model has no training\.json.* or remove 'training_record' from its"):
            load_model(name, device="cpu")


def test_the_model_and_the_best_one_have_digests_of_their_own_files(tmp_path):
    trainer = small_trainer(
        tmp_path, stages="contrastive:2", evaluate_every=1, validate=lambda model, step: {"s": -step}
    )
    trainer.run()
    finish(trainer)
    records = [read_record(folder) for folder in (tmp_path, tmp_path / BEST)]
    assert records[0] | {"files": 0} == records[1] | {"files": 0}
    assert records[0]["files"].keys() == records[1]["files"].keys() >= {"config.json", "model.safetensors"}
    assert records[0]["files"] != records[1]["files"]
    for folder in (tmp_path, tmp_path / BEST):
        load_model(str(folder), device="cpu")
    # A best model that is not the one of its record ends no training.
    (tmp_path / "training.json").unlink()
    flip(tmp_path / BEST / "model.safetensors", -1)
    with pytest.raises(TrainingError, match=r"model\.safetensors is damaged or was changed"):
        finish(trainer)
    (tmp_path / BEST / "training.json").unlink()
    with pytest.raises(TrainingError, match=r"best/training\.json is missing.*: remove .*/best,"):
        finish(trainer)
    assert read_record(tmp_path) is None


def test_a_state_that_no_training_wrote_is_named(tmp_path):
    with pytest.raises(StoppedError):
        small_trainer(tmp_path, on_step=stop_at(5)).run()
    path = tmp_path / FOLDER / FILE
    path.with_name(FILE_BEFORE).write_bytes(b"cut")
    with safe_open(path, "pt") as stored:
        tensors, metadata = {name: stored.get_tensor(name) for name in stored.keys()}, stored.metadata()  # noqa: SIM118
    state, bias = json.loads(metadata["state"]), "model.text_model.projection.bias"
    for changed, stated in [
        ({}, {"position": "[" * 20_000}),
        ({}, {"position": {**state["position"], "stage": "1"}}),
        ({}, {"position": {**state["position"], "best": []}}),
        ({f"weight/{bias}": torch.zeros(1)}, {}),
        ({f"optimizer/exp_avg/{bias}": torch.zeros(1)}, {}),
        ({"optimizer/exp_avg/no.such.weight": torch.zeros(1)}, {}),
    ]:
        text = json.dumps({**state, "digest": NO_DIGEST, **stated})
        save_file({**tensors, **changed}, path, {"state": text})
        path.write_bytes(sealed(path.read_bytes()))
        with pytest.raises(TrainingError, match="Delete the folder"):
            small_trainer(tmp_path).run()
    save_file(tensors, path, {"state": json.dumps({**state, "digest": NO_DIGEST, "version": 9})})
    path.write_bytes(sealed(path.read_bytes()))
    with pytest.raises(
        TrainingError, match="has the version 9, but this program reads 3: resume with the version that"
    ):
        small_trainer(tmp_path).run()


def test_the_scale_of_float16_is_had_again(tmp_path):
    towers, scaler = small_trainer(tmp_path).towers, torch.amp.GradScaler("cpu", init_scale=8.0)
    save_checkpoint(tmp_path, TrainingState(Position()), towers, None, scaler, owner="")
    again = torch.amp.GradScaler("cpu")
    load_checkpoint(tmp_path, towers, None, again)
    assert again.state_dict() == scaler.state_dict()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 14}, "12 rows for a stage 'contrastive', out of 12; a batch needs 14"),
        ({"neighbours": 12}, "neighbours is 12, but a row has only 11 other"),
        ({"neighbours": 2, "batch_size": 3}, "half of a batch are neighbours"),
    ],
)
def test_what_a_later_stage_cannot_do_is_said_before_the_folder_is_taken(tmp_path, settings, message):
    with pytest.raises(AudioCompositionalityError, match=message):
        small_trainer(tmp_path, **settings).run()
    assert not list(tmp_path.iterdir())


def test_only_the_projections_change_where_only_they_are_trained(tmp_path):
    trainer = small_trainer(tmp_path, train="projection", init="tiny-clap", stages="hard:2")
    before = weights(trainer)
    trainer.run()
    after = weights(trainer)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    normed = {name for name in changed if "batch_norm.running" in name}
    heads = ("audio_projection.", "text_projection.", "logit_scale")
    assert all(name.startswith(heads) for name in changed - normed)
    assert any(name.startswith("text_projection.") for name in changed)


def test_chunks_make_the_weights_of_whole_batches(tmp_path):
    settings = {**GENTLE, "init": "tiny-clap"}
    plain, chunked = small_trainer(tmp_path / "a", **settings), small_trainer(tmp_path / "b", chunk=3, **settings)
    plain.run()
    chunked.run()
    assert farthest(weights(plain), weights(chunked)) < 3e-5


def test_batches_are_accumulated(tmp_path):
    trainer = small_trainer(tmp_path, stages="contrastive:2", accumulate=2)
    seen = []
    embed = trainer._embed
    trainer._embed = lambda batch: (seen.append(batch.rows.tolist()), embed(batch))[1]
    trainer.run()
    assert len(seen) == 4
    assert sorted(row for rows in seen[:3] for row in rows) == list(range(12))


def scored(scores):
    """A validation that gives scores in turn."""
    left = list(scores)

    def validate(encoder, step):
        assert encoder.embed_text(["a bell"]).shape == (1, 128)
        return {"score": left.pop(0), "task.group": 0.5, "task.group.kind=a, b": step}

    return validate


def test_a_stage_ends_where_its_scores_rise_no_more_and_the_best_model_is_kept(tmp_path):
    settings = {"stages": "contrastive:7,hard:2", "evaluate_every": 1, "patience": 2}
    # No model is the best by what is no number.
    trainer = small_trainer(tmp_path, validate=scored([math.nan, 0.1, 0.4, 0.3, 0.4, 0.2, 0.3]), **settings)
    trainer.run()
    finish(trainer)
    position = trainer.position
    assert (position.total, position.best, position.best_step) == (7, 0.4, 3)
    record = read_record(tmp_path)
    assert [stage["steps"] for stage in record["stages"]] == [5, 2]
    assert record["best"] == {"score": 0.4, "step": 3}
    assert [one["scores"]["score"] for one in record["evaluations"]][1:] == [0.1, 0.4, 0.3, 0.4, 0.2, 0.3]
    assert read_log(tmp_path / EVALUATIONS)[2]["name"] == "task.group.kind=a, b"
    for folder, title in ((tmp_path, tmp_path.name), (tmp_path / BEST, f"{tmp_path.name}/{BEST}")):
        card = (folder / "README.md").read_text()
        assert f"# {title}\n" in card
        assert "| task.group | " in card
        assert "kind=" not in card
    best, last = (load_file(folder / "model.safetensors") for folder in (tmp_path / BEST, tmp_path))
    assert not is_equal(best, last)
    # The library that writes weights makes their file for the user alone.
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != ".lock"]
    assert {path.stat().st_mode & 0o777 for path in files} == {(tmp_path / "settings.yaml").stat().st_mode & 0o777}
    assert load_model(str(tmp_path / BEST), device="cpu").embed_text(["a bell"]).shape == (1, 128)


def test_evaluations_behind_the_last_state_are_made_again(tmp_path):
    settings = {"stages": "contrastive:6", "evaluate_every": 1, "checkpoint_every": 2}
    with pytest.raises(StoppedError):
        small_trainer(tmp_path, validate=scored([1, 2, 3, 4]), on_step=stop_at(4), **settings).run()
    trainer = small_trainer(tmp_path, validate=scored([3, 4, 5, 6]), **settings)
    trainer.run()
    rows = [row for row in read_log(tmp_path / EVALUATIONS) if row["name"] == "score"]
    assert [(row["step"], float(row["value"])) for row in rows] == [(str(step), step) for step in range(1, 7)]
    assert trainer.position.best == 6


def test_the_weights_of_settings_are_those_of_the_losses(tmp_path):
    def first(name, stages, **weights):
        small_trainer(tmp_path / name, stages=stages, **weights).run()
        return float(read_log(tmp_path / name / STEPS)[0]["loss"])

    both = [first(name, "hard:1", **{name: 0.0}) for name in ("text_to_audio", "audio_to_text")]
    assert sum(both) == pytest.approx(first("even", "hard:1"), abs=1e-5)
    half, once, twice = (first(f"own {k}", "modular:1", modular_weight=k) for k in (0.5, 1.0, 2.0))
    assert once - half == pytest.approx((twice - once) / 2, abs=1e-4)
    assert once > half


def test_neighbours_are_those_of_the_beginning_of_the_stage_also_after_a_stop(tmp_path):
    settings = {"stages": "hard:4", "neighbours": 2}
    trainer = small_trainer(tmp_path / "a", **settings)
    trainer.run()
    with pytest.raises(StoppedError):
        small_trainer(tmp_path / "b", on_step=stop_at(3), **settings).run()
    resumed = small_trainer(tmp_path / "b", **settings)
    resumed.run()
    assert is_equal(weights(trainer), weights(resumed))


def test_a_loss_that_is_no_number_ends_the_run_before_it_is_kept(tmp_path):
    trainer = small_trainer(tmp_path, stages="contrastive:4", checkpoint_every=1)
    embed = trainer._embed

    def broken(batch):
        if trainer.position.total == 2:
            with torch.no_grad():
                next(trainer.towers.model.audio_model.parameters()).fill_(float("nan"))
        return embed(batch)

    trainer._embed = broken
    with pytest.raises(TrainingError, match="loss of step 3 of the stage contrastive is nan"):
        trainer.run()
    state = find_checkpoint(tmp_path, trainer.owner)
    assert state is not None
    assert state.position.total == 2


def test_the_learning_rate_rises_and_falls():
    stage = Stage(kind="hard", steps=10, learning_rate=2.0, warm_up=4)
    rates = [learning_rate_at(stage, step) for step in range(10)]
    assert rates[:4] == [0.5, 1.0, 1.5, 2.0]
    assert rates[4] == 2.0
    assert rates[4:] == sorted(rates[4:], reverse=True)
    assert 0.2 < rates[-1] < 0.4


def test_biases_norms_and_the_scale_do_not_decay(tmp_path):
    towers = small_trainer(tmp_path, init="tiny-clap").towers
    decaying, still = make_optimizer(towers, 0.1).param_groups
    assert (decaying["weight_decay"], still["weight_decay"]) == (0.1, 0.0)
    names = {id(weight): name for name, weight in towers.named_trained()}
    unmoved = {names[id(weight)] for weight in still["params"]}
    assert "model.logit_scale_a" in unmoved
    assert all(name.endswith((".bias", "norm.weight", "Norm.weight", "_scale_a")) or "norm" in name for name in unmoved)
