"""Texts by a language model: what is taken of its answers, data that are written by it, and a model of transformers."""

import json
import re

import datasets
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.dataset_builder.texts.rewriting import (
    CachedAnswers,
    LanguageModel,
    LanguageModelWriter,
    rewrite,
    written_data,
)
from audio_compositionality.support.errors import InputError

from .scripted import Scripted, as_json, kind_of_prompt, save_tiny_gpt2

EVENTS = [
    {"label": "bell", "attributes": ["slow", "high"], "start": 0.0, "stop": 5.0},
    {"label": "organ", "attributes": ["low"], "start": 5.0, "stop": 10.0},
]

TRAINING = {
    "id": "t-0",
    "split": "train",
    "captions": ["a slow bell followed by a low organ", "a low organ after a slow bell"],
    "parts": ["a slow bell", "a low organ"],
    "negatives": [
        {"text": "a low organ followed by a slow bell", "kind": "order"},
        {"text": "a slow organ followed by a low bell", "kind": "attribute"},
        {"text": "a slow bell followed by a low reed", "kind": "absent"},
    ],
    "events": EVENTS,
    "expression": "slow bell + low organ",
}

ITEM = {
    "id": "i-0",
    "split": "test",
    "captions": ["a bell before an organ", "an organ before a bell", "a bell with an organ"],
    "events": [
        [{"label": "bell", "start": 0, "stop": 5}, {"label": "organ", "start": 5, "stop": 10}],
        [{"label": "organ", "start": 0, "stop": 5}, {"label": "bell", "start": 5, "stop": 10}],
        [{"label": "organ", "start": 0, "stop": 10}, {"label": "bell", "start": 0, "stop": 10}],
    ],
    "writer": "template",
    "template": "before",
    "mention": "forward",
}

GOOD = {
    "paraphrase": as_json(caption="A slow bell rings, and then a low organ is heard."),
    "description": as_json(caption="There is a low organ, preceded by the sound of a slow bell."),
    "negatives": as_json(
        negatives=[
            "a low organ, then a slow bell",
            "a slow bell while a low organ plays",
            "A low bell, then a slow organ",
        ]
    ),
}


def scripted(answers):
    return Scripted(lambda prompt: answers.get(kind_of_prompt(prompt), ""))


def caption_in(prompt):
    return re.search(r'^"(.*)"$', prompt, re.MULTILINE)[1]


def test_what_is_taken_stands_in_the_place_of_the_templates():
    (row,), report = rewrite([TRAINING], LanguageModelWriter(scripted(GOOD)))
    assert row["captions"] == [
        "a slow bell rings, and then a low organ is heard",
        "there is a low organ, preceded by the sound of a slow bell",
    ]
    assert row["negatives"] == [
        {"text": "a low organ, then a slow bell", "kind": "order"},
        {"text": "a low bell, then a slow organ", "kind": "attribute"},
        {"text": "a slow bell followed by a low reed", "kind": "absent"},
        {"text": "a slow bell while a low organ plays", "kind": "relation"},
    ]
    assert row["writer"] == "language-model"
    assert {name: row[name] for name in ("id", "split", "parts", "events", "expression")} == {
        name: TRAINING[name] for name in ("id", "split", "parts", "events", "expression")
    }
    assert (report.asked, report.taken, report.refused, report.left) == (5, 5, {}, 0)
    # Seven of eight and of eight words; six of nine and seven, twelve of sixteen, six of seven and eight.
    caption = 8
    shares = [2 * 6 / (7 + caption), 2 * 6 / (8 + caption), 2 * 6 / (7 + caption)]
    assert report.overlap == {"language-model": pytest.approx(sum(shares) / 3), "template": pytest.approx(14 / 16)}
    assert TRAINING["negatives"][0]["text"] == "a low organ followed by a slow bell"


def test_what_is_refused_leaves_the_row_as_it_is_and_is_counted():
    answers = {
        "paraphrase": "a slow bell, then a low organ",
        "description": as_json(caption="a low organ gloomily after a slow bell"),
        "negatives": as_json(negatives=["a slow bell before a low organ", "a low organ, then a slow bell" * 10]),
    }
    (row,), report = rewrite([TRAINING], LanguageModelWriter(scripted(answers)))
    assert row == {**TRAINING, "writer": "template"}
    assert report.refused == {"no JSON": 1, "undecided": 1, "wrong": 1, "too long": 1, "no text": 1}
    assert (report.asked, report.taken) == (5, 0)
    assert report.unlisted == {"gloomily": 1}
    assert report.overlap.keys() == {"template"}
    text = " ".join(report.sentences())
    assert "Of 5 texts requested from scripted, 0 are accepted (0%)." in text
    assert "1 'undecided'" in text
    assert "gloomily" in text


def test_no_text_comes_twice_in_a_row():
    same = {
        **GOOD,
        "paraphrase": as_json(caption="a slow bell then a low organ"),
        "negatives": as_json(
            negatives=[
                "A low organ followed by a slow bell",
                "a low organ, then a slow bell",
                "a low organ then a slow bell.",
            ]
        ),
    }
    twice = {**TRAINING, "captions": ["a slow bell before a low organ", "a slow bell followed by a low organ", "x"]}
    twice["captions"][2] = "a slow bell and then a low organ"
    (row,), report = rewrite([twice], LanguageModelWriter(scripted(same)))
    assert row["captions"].count("a slow bell then a low organ") == 1
    assert [negative["text"] for negative in row["negatives"]].count("a low organ, then a slow bell") == 1
    assert report.refused == {"repeated": 3, "direction": 1}


def test_the_model_is_asked_for_the_direction_of_the_caption_and_for_no_words_that_are_kept_from_training():
    model = scripted(GOOD)
    rewrite([TRAINING], LanguageModelWriter(model))
    (prompts,) = model.asked
    forward, described, negatives = prompts
    assert kind_of_prompt(described) == "description"
    assert "- slow bell: 0.0 to 5.0 s\n- low organ: 5.0 to 10.0 s" in described
    assert "last first" in described
    assert "preceded by" in described
    assert "followed by" not in described
    assert "heard first before" in forward
    assert "Write 3 different captions" in negatives
    assert not any("amid" in prompt for prompt in prompts)
    assert caption_in(forward) == TRAINING["captions"][0]


def test_of_one_sound_no_negatives_are_asked():
    one = {**TRAINING, "captions": ["a slow bell"], "parts": [], "events": EVENTS[:1]}
    model = scripted({"paraphrase": as_json(caption="the sound of a slow bell")})
    (row,), report = rewrite([one], LanguageModelWriter(model))
    assert row["captions"] == ["the sound of a slow bell"]
    assert report.asked == len(model.asked[0]) == 1


def test_rows_that_cannot_be_read_are_left_and_counted():
    strange = {**TRAINING, "captions": ["somebody hits a bell, hard"]}
    model = scripted(GOOD)
    (row,), report = rewrite([strange], LanguageModelWriter(model))
    assert row == {**strange, "writer": "template"}
    assert (report.left, report.asked, model.asked) == (1, 0, [[]])
    assert "for 1 rows whose captions cannot be read" in " ".join(report.sentences())


def by_caption(answers):
    return Scripted(lambda prompt: as_json(caption=answers[caption_in(prompt)]))


TWINS = {
    "a bell before an organ": "a bell, then an organ",
    "an organ before a bell": "an organ, then a bell",
    "a bell with an organ": "a bell and an organ at the same time",
}


class TestItems:
    def test_twins_are_taken_together(self):
        (row,), report = rewrite([ITEM], LanguageModelWriter(by_caption(TWINS), in_test=True))
        assert row["captions"] == list(TWINS.values())
        assert (row["writer"], row["template"], report.taken) == ("language-model", "language-model", 3)

    @pytest.mark.parametrize(
        ("text", "refused"),
        [
            ("a bell followed by an organ", {"counterparts": 2}),
            ("an organ", {"sounds": 1, "counterparts": 1}),
        ],
    )
    def test_or_not_at_all(self, text, refused):
        answers = TWINS | {"a bell before an organ": text}
        (row,), report = rewrite([ITEM], LanguageModelWriter(by_caption(answers), in_test=True))
        assert row["captions"] == [*ITEM["captions"][:2], TWINS["a bell with an organ"]]
        assert (row["writer"], row["template"]) == ("language-model", "before")
        assert report.refused == refused

    def test_a_caption_is_false_of_the_other_clips(self):
        """Here all might be true of the second clip, at least for some."""
        events = [*ITEM["events"]]
        events[1] = [{"label": "bell", "start": 0, "stop": 5}, {"label": "organ", "start": 4, "stop": 10}]
        item = {**ITEM, "events": events}
        (row,), report = rewrite([item], LanguageModelWriter(by_caption(TWINS), in_test=True))
        assert row == item
        assert report.refused == {"wrong": 3}

    def test_what_is_kept_from_training_may_stand_there(self):
        answers = {caption: text.replace("a bell, then", "first a bell, later") for caption, text in TWINS.items()}
        answers["an organ before a bell"] = "first an organ, later a bell"
        (row,), _ = rewrite([ITEM], LanguageModelWriter(by_caption(answers), in_test=True))
        assert row["captions"][0] == "first a bell, later an organ"


SMALL = {
    "comp_a_train": {"sample_rate": 8_000, "train_rows": 6, "validation_rows": 2},
    "comp_a_order": {"sample_rate": 8_000, "items": 8},
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(tmp_path / "cache"))


def small(*recipes):
    settings = {name: load_recipe(name).presets["mini"].changed(**SMALL[name]) for name in recipes}
    return RenderedData("small", settings)


_TOGETHER = tuple((word, "alongside") for word in ("with", "over", "amid", "while"))


def renamed(prompt):
    """Paraphrases by another word, where the caption has one of these; nothing else."""
    if kind_of_prompt(prompt) != "paraphrase":
        return ""
    caption = caption_in(prompt)
    for before, after in (("followed by", "then"), ("and then", "then"), ("after", "preceded by"), *_TOGETHER):
        caption = caption.replace(f" {before} ", f" {after} ")
    return as_json(caption=caption)


@pytest.fixture
def data():
    return small("comp_a_train")


def test_texts_are_in_the_fingerprint_and_nothing_is_asked_twice(data):
    model = Scripted(renamed)
    written = written_data(data, LanguageModelWriter(model))
    report = written.reports["comp_a_train"]
    assert 0 < report.taken < report.asked
    count = len(model.asked)
    assert count
    one, again = written.configuration("comp_a_train"), written_data(data, LanguageModelWriter(model))
    assert len(model.asked) == count
    assert again.configuration("comp_a_train").fingerprint == one.fingerprint
    assert again.configuration("comp_a_train").rows == one.rows
    prints = {data.configuration("comp_a_train").fingerprint, one.fingerprint}
    for other in (Scripted(renamed, revision="2"), Scripted(lambda prompt: "")):
        written = written_data(data, LanguageModelWriter(other), keep_answers=False)
        prints.add(written.configuration("comp_a_train").fingerprint)
    # Another revision, and what it did not write.
    assert len(prints) == 4


def test_a_built_folder_holds_them_beside_the_same_sound(data, tmp_path):
    written = written_data(data, LanguageModelWriter(Scripted(renamed)))
    folder = build_dataset(written, tmp_path / "written", progress=False)
    stored, plain = open_data(folder).configuration("comp_a_train"), data.configuration("comp_a_train")
    assert stored.fingerprint == written.configuration("comp_a_train").fingerprint
    assert "language-model" in {row["writer"] for row in stored.rows} <= {"template", "language-model"}
    rows = written.configuration("comp_a_train").rows
    assert list(stored.rows) == list(rows)
    assert [row["captions"] for row in rows] != [row["captions"] for row in plain.rows]
    for one, other in zip(stored.clips(), plain.clips(), strict=True):
        assert (one.waveform == other.waveform).all()
    rows = datasets.load_dataset(str(folder), "comp_a_train", split="train", cache_dir=str(tmp_path / "hub"))
    assert rows.features["writer"].dtype == "string"
    card = (folder / "README.md").read_text()
    assert "texts requested from scripted" in card
    # Another build of the same is none; without the model it is other data.
    assert build_dataset(written, folder, progress=False) == folder
    with pytest.raises(DatasetError, match="contains different data under the name"):
        build_dataset(data, folder, progress=False)


def test_test_items_are_written_only_where_it_is_asked_for():
    data = small("comp_a_order")
    model = Scripted(renamed)
    with pytest.raises(InputError, match="none of comp_a_order has captions that a language model may rewrite"):
        written_data(data, LanguageModelWriter(model))
    assert model.asked == []
    written = written_data(data, LanguageModelWriter(model, in_test=True)).configuration("comp_a_order")
    captions = [[row["captions"] for row in one.rows] for one in (written, data.configuration("comp_a_order"))]
    assert captions[0] != captions[1]


def test_a_file_of_answers_that_was_cut_short_is_gone_on_with():
    model = Scripted(lambda prompt: f"to {prompt}")
    kept = CachedAnswers(model)
    assert kept.generate(["a", "b", "a"]) == ["to a", "to b", "to a"]
    assert model.asked == [["a", "b"]]
    kept.path.write_bytes(kept.path.read_bytes()[:-10])
    with pytest.warns(UserWarning, match=r"1 lines of .*\.jsonl are skipped, .* repeated: .*line 3"):
        assert CachedAnswers(model).generate(["b", "c"]) == ["to b", "to c"]
    assert model.asked[1:] == [["b", "c"]]
    assert CachedAnswers(model).generate(["a", "b", "c"]) == ["to a", "to b", "to c"]
    assert len(model.asked) == 2
    # Another model's answers are others.
    assert CachedAnswers(Scripted(lambda prompt: "", revision="2")).generate(["a"]) == [""]


def test_an_answer_that_was_changed_is_refused():
    model = Scripted(lambda prompt: f"to {prompt}")
    path = CachedAnswers(model).path
    CachedAnswers(model).generate(["a", "b"])
    path.write_bytes(path.read_bytes().replace(b"to b", b"to c"))
    with pytest.raises(DatasetError, match=r"line 3 of .*\.jsonl was changed after it was written: .* Remove the line"):
        CachedAnswers(model).generate(["a"])


def test_the_command_builds_with_a_model_from_a_folder(tmp_path, capsys, monkeypatch):
    from audio_compositionality.cli.main import main
    from audio_compositionality.dataset_builder import rendered
    from audio_compositionality.dataset_builder.texts import rewriting as written

    preset = rendered.rendered_preset

    def few_of(name, *, recipes=None, **changes):
        return preset(name) if recipes is None else small(*recipes)

    monkeypatch.setattr(rendered, "rendered_preset", few_of)
    monkeypatch.setattr(written, "MOST_NEW_TOKENS", 10)
    folder = save_tiny_gpt2(tmp_path / "tiny")
    few = ("build", "--recipes", "comp_a_train", "--out", str(tmp_path / "x"))
    assert main([*few, "--set", "writer_in_test=true"]) == 2
    assert "writer_in_test has no effect without --writer MODEL; give it too" in capsys.readouterr().err
    assert main([*few, "--writer", "nowhere"]) == 2
    assert "cannot load the language model 'nowhere'" in capsys.readouterr().err
    assert main([*few, "--writer", str(folder), "--set", "writer_device=cpu"]) == 0
    output = capsys.readouterr().out
    assert "texts requested from tiny, 0 are accepted (0%)" in output
    assert "'no JSON'" in output
    assert {row["writer"] for row in open_data(tmp_path / "x").configuration("comp_a_train").rows} == {"template"}


CHAT = "{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}[answer]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_tiny_gpt2(tmp_path_factory.mktemp("gpt2") / "tiny")


def greedy(folder, prompt, count):
    """The most probable byte after the other, one at a time."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    tokens = tokenizer(prompt)["input_ids"]
    answer = []
    with torch.inference_mode():
        while len(answer) < count and answer[-1:] != [256]:
            answer.append(int(model(torch.tensor([tokens + answer])).logits[0, -1].argmax()))
    return tokenizer.decode(answer, skip_special_tokens=True)


def test_the_most_probable_token_is_taken_whatever_the_models_own_settings(folder):
    prompts = ["a bell", "Say something about an organ, please.", "x"]
    expected = [greedy(folder, prompt, 12) for prompt in prompts]
    for batch_size in (1, 2, 3):
        model = LanguageModel(folder, device="cpu", batch_size=batch_size, most_new_tokens=12)
        assert model.generate(prompts) == expected
    assert model.generate([]) == []


def test_a_chat_template_is_used(tmp_path):
    folder = save_tiny_gpt2(tmp_path / "chat", chat_template=CHAT)
    model = LanguageModel(folder, device="cpu", most_new_tokens=8)
    assert model.generate(["a bell"]) == [greedy(folder, "[user]a bell[answer]", 8)]


def test_a_folder_is_known_by_what_it_holds(folder, tmp_path):
    identity = LanguageModel(folder, device="cpu").identity
    assert identity["model"] == "tiny"
    assert str(folder.parent) not in json.dumps(dict(identity))
    other = save_tiny_gpt2(tmp_path / "other" / "tiny", chat_template=CHAT)
    assert LanguageModel(other, device="cpu").identity["revision"] != identity["revision"]
    assert LanguageModel(folder, device="cpu", batch_size=7).identity != identity


def test_a_prompt_that_is_too_long_is_an_error(tmp_path):
    folder = save_tiny_gpt2(tmp_path / "short", positions=64)
    model = LanguageModel(folder, device="cpu", most_new_tokens=32)
    assert len(model.generate(["x" * 32])) == 1
    with pytest.raises(InputError, match="reads at most 64 tokens, but a prompt has 33 and its answer up to 32"):
        model.generate(["x" * 33])


def test_code_of_a_model_is_never_run_and_pickles_are_not_read(tmp_path):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    folder = save_tiny_gpt2(tmp_path / "code")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "of-its-own", "auto_map": {"AutoConfig": "code.C", "AutoModelForCausalLM": "code.M"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(InputError, match="cannot load the language model"):
        LanguageModel(folder, device="cpu")
    assert not (tmp_path / "ran").exists()
    folder = save_tiny_gpt2(tmp_path / "pickled")
    (folder / "model.safetensors").unlink()
    torch.save(
        AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder)).state_dict(), folder / "pytorch_model.bin"
    )
    with pytest.raises(InputError, match="safetensors weights"):
        LanguageModel(folder, device="cpu")
