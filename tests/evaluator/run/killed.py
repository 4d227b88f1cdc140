"""Forks processes that embed into one store, kills all but the last, and lets an undisturbed one fill another store.

python killed.py FOLDER SHARDS BATCH_SIZE LIFETIMES, the last a JSON list of seconds, each counted from the first batch
that the process embeds. Writes FOLDER/killed, FOLDER/whole and FOLDER/log. Forked, because a fresh process would spend
seconds on imports.
"""

import gc
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

import numpy as np

from audio_compositionality.encoders.base import ModelCard, StagedEncoder
from audio_compositionality.evaluator.run.embeddings import embed_configuration, open_store
from audio_compositionality.evaluator.run.options import RunOptions

sys.path.insert(0, str(Path(__file__).parent))
from numbered import Numbered


class Logged(StagedEncoder):
    """64 values a clip; takes a millisecond a batch and logs the batch's shard."""

    card = ModelCard("logged", "v1", 16_000, 64)

    def __init__(self, log, shard_of):
        self.log = log
        self.shard_of = shard_of

    def _extract_features(self, clips):
        return clips

    def _run_model(self, features):
        time.sleep(0.001)
        embeddings = np.sin(np.outer(features[:, 0], np.arange(1, 65))).astype(np.float32)
        # What is embedded a second time is of many shards.
        shards = {self.shard_of[int(number)] for number in features[:, 0]}
        note(self.log, f"batch {shards.pop()}" if len(shards) == 1 else "again")
        return embeddings


def note(log, line):
    # In one write, so that no line is torn by the end of the process.
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def embed(root, shards, batch_size, log):
    note(log, "begins")
    for path in sorted(root.rglob("0*.safetensors*")):
        note(log, f"finished {int(path.name[:5])}")
    configuration, options = Numbered(64 * shards), RunOptions(store=root, batch_size=batch_size, progress=False)
    store = open_store(Logged(log, {}), configuration, options)
    shard_of = {number: shard for shard in range(shards) for number in store.numbers(shard)}
    embed_configuration(Logged(log, shard_of), configuration, options)


def start(*arguments):
    process = os.fork()
    if process == 0:
        status = 1
        try:
            embed(*arguments)
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    return process


def batches(log):
    return log.read_text().count("batch") if log.exists() else 0


def main():
    folder, shards, batch_size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    killed = folder / "killed", shards, batch_size, folder / "log"
    # What is imported need not be looked through for garbage in each process.
    gc.freeze()
    for seconds in json.loads(sys.argv[4]):
        before = batches(killed[-1])
        process = start(*killed)
        status = 0
        while batches(killed[-1]) == before and status == 0:
            time.sleep(0.001)
            _, status = os.waitpid(process, os.WNOHANG)
        assert status == 0, f"a process failed with status {status}"
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        assert os.WIFSIGNALED(status), "a process had come to its end before it was killed"
    for arguments in (killed, (folder / "whole", shards, batch_size, folder / "other-log")):
        _, status = os.waitpid(start(*arguments), 0)
        assert status == 0, f"a process failed with status {status}"


if __name__ == "__main__":
    main()
