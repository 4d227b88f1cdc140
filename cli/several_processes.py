"""The examples of commands that embed, which run in any number of processes."""

from __future__ import annotations

_EXAMPLES = """\
  audio-compositionality {command} whisper-base --layer 3 --pooling max{out}
      the output of the third block, its maximum over time
  audio-compositionality {command} whisper-base --layer all{out}
      every layer, each as a model of its own, from one pass; also --layer 0,3,6
  audio-compositionality {command} whisper-large-v3 --precision bfloat16{out}
      faster on a GPU; results state how far the embeddings are from float32
  torchrun --nproc_per_node 4 -m audio_compositionality {command} MODEL{out}
      four processes on one machine, each with a GPU of its own where there are so many; also
      accelerate launch --num_processes 4 -m audio_compositionality {command} ...
      (on a CPU take torchrun: accelerate launch --cpu runs a single process unless it is configured otherwise)
  srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 4 --rdzv_backend c10d --rdzv_endpoint $HEAD_NODE:29500 \\
      -m audio_compositionality {command} MODEL --preset full{shared}
      several machines in a SLURM job with one task a node; {folder} must be on a file system that all of them see

what is kept:
  Every 64 clips, or 16 answers, are one file below {folder}, under a key made of the data, the model's revision and
  weights, layer, pooling, precision, and the words, orders and scoring of questions. What is there is not computed
  again: a run that was stopped, however it was stopped, is continued by the same command, and another layer, precision
  or prompt gets a folder of its own. Answers of a file that is not finished are kept too, each as soon as it is there.
"""


def examples(command: str, *, out: str = "") -> str:
    """The examples of a command.

    Args:
        command: its name.
        out: the argument that names the folder of its embeddings, where the command requires one.
    """
    return _EXAMPLES.format(
        command=command, out=out, shared=out or " --store DIR", folder=(out or " --store").split()[0]
    )
