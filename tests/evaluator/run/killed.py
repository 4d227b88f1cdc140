"""Forks processes that fill one store, kills all but the last, and lets an undisturbed one fill another store.

python -m tests.evaluator.run.killed FOLDER KIND LIFETIMES: KIND is embed or ask, LIFETIMES a JSON list of seconds, each
counted from the first batch of a process. Writes FOLDER/killed, FOLDER/whole and FOLDER/log: of each process the names
of the files that it finds, and the items of each batch. Forked, because a fresh process would spend seconds on imports.
"""

import gc
import json
import os
import signal
import sys
import time
import traceback
from itertools import islice
from pathlib import Path

import numpy as np

from audio_compositionality.encoders.base import Model, ModelCard, StagedEncoder
from audio_compositionality.evaluator.run.answers import compute_answers
from audio_compositionality.evaluator.run.embeddings import embed_configuration
from audio_compositionality.evaluator.run.opened import open_task
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.run.processes import Processes

from .toys import Numbered, Orders, Questions

CLIPS, QUESTIONS, BATCH, TOLD = 3_200, 400, 16, 6


def note(log, line):
    # In one write, so that no line is torn by the end of the process.
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


class Embeds(StagedEncoder):
    """64 values a clip; takes a millisecond a batch and logs the batch."""

    card = ModelCard("embeds", "v1", 16_000, 64)

    def __init__(self, log):
        self.log = log

    def _extract_features(self, clips):
        return clips

    def _run_model(self, features):
        time.sleep(0.001)
        numbers = features[:, 0].astype(int)
        note(self.log, f"batch {json.dumps(numbers.tolist())}")
        return np.sin(np.outer(numbers, np.arange(1, 65))).astype(np.float32)


class Answers(Model):
    """Gives each batch of answers as soon as it has them, and logs it."""

    card = ModelCard("answers", "v1", 8, None)
    batch_size, questions_per_call = TOLD, 4 * TOLD

    def __init__(self, log):
        self.log = log

    def answer(self, clips, prompts):
        raise NotImplementedError

    def answers(self, questions, by=None, *, size):
        while batch := list(islice(questions, TOLD)):
            time.sleep(0.001)
            note(self.log, f"batch {json.dumps([question.prompt for question in batch])}")
            for question in batch:
                text = question.prompt[::-1]
                yield question.index, (text, {"tokens": len(text)})


def embed(options, log):
    embed_configuration(Embeds(log), Numbered(CLIPS), options)


def ask(options, log):
    compute_answers(Answers(log), open_task(Orders(), Questions(asked=QUESTIONS)), options, Processes())


def start(fill, root, log):
    process = os.fork()
    if process == 0:
        status = 1
        try:
            names = sorted(path.name for path in root.rglob("*") if path.is_file())
            note(log, f"begins {json.dumps(names)}")
            fill(RunOptions(cache=root, batch_size=BATCH, progress=False), log)
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    return process


def batches(log):
    return log.read_text().count("batch") if log.exists() else 0


def main():
    folder, fill = Path(sys.argv[1]), {"embed": embed, "ask": ask}[sys.argv[2]]
    killed = folder / "killed", folder / "log"
    # What is imported need not be looked through for garbage in each process.
    gc.freeze()
    for seconds in json.loads(sys.argv[3]):
        before = batches(killed[-1])
        process = start(fill, *killed)
        status = 0
        while batches(killed[-1]) == before and status == 0:
            time.sleep(0.001)
            _, status = os.waitpid(process, os.WNOHANG)
        assert status == 0, f"a process failed with status {status}"
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        assert os.WIFSIGNALED(status), "a process had come to its end before it was killed"
    for arguments in (killed, (folder / "whole", folder / "other-log")):
        _, status = os.waitpid(start(fill, *arguments), 0)
        assert status == 0, f"a process failed with status {status}"


if __name__ == "__main__":
    main()
