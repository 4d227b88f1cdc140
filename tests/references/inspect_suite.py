"""Run the real inspect_ai with our tasks: on mockllm with given outputs, and by its command on a loopback server.

    pip install -c constraints.txt . inspect_ai==0.3.285
    python tests/references/inspect_suite.py       # --all: three more runs

Exits with 1 if anything is not as it should be. The scores are those of our own run of the same answers, which depend
on the prompt and on each sample of the sound.
"""

from __future__ import annotations

import base64
import importlib
import io
import os
import subprocess
import sys
import tempfile
import wave
from pathlib import Path
from typing import Any

from hashed import hashed_answer, ours

from audio_compositionality.evaluator.answer_logs import read_logs
from audio_compositionality.evaluator.rescore import rescore

TESTS = Path(__file__).parents[1]


def helper(folder: str, name: str) -> Any:
    """A module of the tests; other packages have a folder of that name, too."""
    sys.path.insert(0, str(TESTS / folder))
    return importlib.import_module(name)


def samples_of(wav: bytes) -> bytes:
    with wave.open(io.BytesIO(wav)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return file.readframes(file.getnframes())


def check(log: Any, task: str, expected: dict[str, Any]) -> None:
    """The measures in a log are those expected, to the last digit."""
    assert log.status == "success", log.error.message
    theirs = {name: metric.value for score in log.results.scores for name, metric in score.metrics.items()}
    of_task = {name.removeprefix(f"{task}/"): value for name, value in theirs.items() if name.startswith(f"{task}/")}
    assert len(of_task) > 3, (task, theirs)
    different = {name: (expected[name], value) for name, value in of_task.items() if expected[name] != value}
    assert not different, (task, different)
    # The share of single answers, where a question has one.
    by_question = theirs["accuracy"] if "?" in log.samples[0].id else expected.get("accuracy_micro", theirs["accuracy"])
    assert abs(theirs["accuracy"] - by_question) < 1e-12, (task, theirs["accuracy"], by_question)
    assert 0 < theirs["stderr"] < 0.2, (task, theirs["stderr"])


def on_mockllm(task: str, data: str, control: str = "", **settings: Any) -> Any:
    inspect, model = importlib.import_module("inspect_ai"), importlib.import_module("inspect_ai.model")

    def answer(messages: Any, *_: object) -> Any:
        sound, text = messages[-1].content
        prefix = "data:audio/wav;base64,"
        assert sound.audio.startswith(prefix)
        words = hashed_answer(text.text, samples_of(base64.b64decode(sound.audio[len(prefix) :])))
        output = model.ModelOutput.from_content("mockllm", words)
        # Without it inspect_ai counts tokens by a file from elsewhere.
        output.usage = model.ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    (log,) = inspect.eval(
        f"audio_compositionality/{task}",
        model=model.get_model("mockllm/model", custom_outputs=answer, memoize=False),
        task_args={"data": data, "control": control, **settings},
        display="none",
        log_dir="logs",
    )
    return log


def on_server(folder: Path) -> None:
    """The command, with a model behind a server of this machine."""
    endpoints = helper("encoders/language_models", "endpoint_server")
    server = endpoints.LoopbackEndpoint(endpoints.StillClock())

    def answered(request: Any) -> Any:
        content = request.body["messages"][-1]["content"]
        sound = base64.b64decode(next(part["input_audio"]["data"] for part in content if "input_audio" in part))
        text = next(part["text"] for part in content if "text" in part)
        return endpoints.completion(hashed_answer(text, samples_of(sound)))

    server.respond = answered
    try:
        subprocess.run(
            [str(Path(sys.executable).with_name("inspect")), "eval", "audio_compositionality/polybench",
             "--model", "openai-api/loop/tiny", "-T", "control=without-audio", "-T", "orders=cyclic",
             "--log-dir", str(folder), "--display", "none", "--no-log-images"],
            env={**os.environ, "LOOP_API_KEY": "none", "LOOP_BASE_URL": server.url}, check=True,
        )  # fmt: skip
    finally:
        server.close()
    (path,) = folder.glob("*.eval")
    log = importlib.import_module("inspect_ai.log").read_eval_log(str(path))
    assert len(log.samples) == len(server.requests) > 900, len(log.samples)
    assert (log.eval.config.limit, log.plan.config.max_tokens) == (None, 16)
    check(log, "polybench", ours(":Hashed", "polybench", "mini", "without-audio", orders="cyclic"))


def main() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        every = "--all" in sys.argv[1:]
        for task in ("polybench", "polybench_apart", "polybench_atoms")[: 3 if every else 1]:
            check(on_mockllm(task, "mini"), task, ours(":Hashed", task, "mini"))
        for control in ("shuffled-audio", "other-audio")[0 if every else 1 :]:
            log = on_mockllm("polybench", "mini", control)
            check(log, "polybench", ours(":Hashed", "polybench", "mini", control))
        # Single answers, too, are read as `rescore` reads them.
        read = rescore(read_logs(Path(log.location))[0])
        assert len(read.scored) == 300
        assert not read.differences
        (Path(name) / "questions").mkdir()
        table = str(helper("tasks", "listeners").write_questions(Path(name) / "questions", 60))
        # Clips of another rate, which a model here hears resampled: their answers are compared by the prompt alone.
        log = on_mockllm("audio_questions", table)
        given = {sample.id: sample.output.completion for sample in log.samples}
        pose = importlib.import_module("audio_compositionality.bridges.questions").pose
        check(log, "audio_questions", pose("audio_questions", table).scores(given))
        on_server(Path(name) / "server")
        os.chdir("/")
    count = 6 if every else 3
    print(f"inspect_ai 0.3.285: {count} runs on mockllm and one by its command score to the last digit as ours")


if __name__ == "__main__":
    main()
