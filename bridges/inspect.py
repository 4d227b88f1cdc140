"""Every task of questions as a task of inspect_ai.

    inspect eval audio_compositionality/TASK --model MODEL -T data=questions.csv -T control=without-audio

The prompts are the task's own. The sound is a WAV file, made when its question is asked. ``accuracy`` and ``stderr``,
which is clustered by group, are inspect_ai's, of single answers by the matcher, as are the accuracies of kinds; of free
answers they are means of the task's score of each. Measures that begin with the task's name, such as the one that it
ranks by, are the task's, of several epochs their mean.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from statistics import fmean
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ContentAudio, ContentText, GenerateConfig
from inspect_ai.scorer import CORRECT, INCORRECT, SampleScore, Score, accuracy, grouped, metric, scorer, stderr
from inspect_ai.solver import generate, solver

from audio_compositionality.encoders.language_models.endpoint import wav_bytes
from audio_compositionality.tasks.shapes.asking import DIRECT, ONE_ORDER

from .questions import PosedTask, pose, tasks_of_questions


def question_task(name: str) -> Callable[..., Any]:
    """Return the function that makes the task of inspect_ai; its arguments are set with ``-T``, see `pose`."""

    def make(data: str = "mini", control: str = "", prompt: str = DIRECT, orders: int | str = ONE_ORDER) -> Any:
        posed = pose(name, data, control, prompt, orders)
        samples = [
            Sample(one.prompt, id=id, target=one.answer, metadata={"kind": one.kind, "group": one.group})
            for id, one in posed.questions.items()
        ]
        return Task(
            dataset=MemoryDataset(samples, name=name),
            solver=[_hearing(posed), generate()],
            scorer=_matching(posed),
            config=GenerateConfig(temperature=0, max_tokens=posed.new_tokens),
            version=posed.opened.task.info.version,
        )

    make.__name__ = make.__qualname__ = name
    return make


def _hearing(posed: PosedTask) -> Any:
    """A solver that puts the sound before the prompt."""

    def hearing() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            clip = posed.sound(posed.questions[state.sample_id])
            data = base64.b64encode(wav_bytes(clip.waveform, clip.sample_rate)).decode("ascii")
            sound = ContentAudio(audio=f"data:audio/wav;base64,{data}", format="wav")
            state.user_prompt.content = [sound, ContentText(text=state.user_prompt.text)]
            return state

        return solve

    # Registered without arguments, which would be written to the log.
    return solver(hearing)()


def _matching(posed: PosedTask) -> Any:
    """A scorer by the matcher, with the measures of the task, ``TASK/accuracy``."""
    task_name = posed.opened.task.info.name

    def measures() -> Any:
        def of_epochs(scores: list[SampleScore]) -> dict[str, float]:
            epochs: dict[int, dict[str, str]] = {}
            for one in scores:
                epochs.setdefault(one.score.metadata["epoch"], {})[one.sample_id] = one.score.explanation or ""
            values = [posed.scores(answers) for answers in epochs.values()]
            names = values[0] if all(values) else ()
            return {f"{task_name}/{name}": fmean(one[name] for one in values) for name in names}

        return of_epochs

    def matching() -> Any:
        async def score(state: Any, target: Any) -> Any:
            question, answer = posed.questions[state.sample_id], state.output.completion
            points = question.score(answer)
            value = points if question.free else CORRECT if points else INCORRECT
            option, epoch = question.option_of(answer), {"epoch": state.epoch}
            return Score(value=value, answer=option, explanation=answer, metadata=epoch)

        return score

    by_kind = grouped(accuracy(), "kind", all=False)
    ours = metric(task_name, scores="unreduced")(measures)()
    metrics = [accuracy(), stderr(cluster="group"), by_kind, ours]
    return scorer(metrics=metrics)(matching)()


TASKS = {one.info.name: task(name=one.info.name)(question_task(one.info.name)) for one in tasks_of_questions()}
"""The tasks by their names; inspect_ai knows them as ``audio_compositionality/NAME``."""
