"""The log-likelihood of given answers: the prompt is read once, its cache serves all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from .front_end import Inputs

if TYPE_CHECKING:
    import torch


class Forward(Protocol):
    """A model that is called with its inputs and returns `logits` [n, tokens, vocabulary] and `past_key_values`."""

    def __call__(self, inputs: Inputs, *, only_last: bool) -> Any:
        """See `TransformersLanguageModel`."""


def log_likelihoods(
    forward: Forward, inputs: Inputs, continuations: Sequence[Sequence[Sequence[int]]], pad: int
) -> list[list[float]]:
    """The mean over its tokens of the log-likelihood of each continuation of each prompt.

    Args:
        forward: the model.
        inputs: of prompts, padded on the left, where the model is.
        continuations: of each prompt some, of each the numbers of its tokens, one or more.
        pad: number of the token that fills up a batch.

    Returns:
        natural logarithms; of a continuation of one token that of the token.
    """
    import torch

    mask = inputs["attention_mask"]
    output = forward(inputs, only_last=True)
    first = output.logits[:, -1].float().log_softmax(dim=-1)
    sums = [[float(first[row, tokens[0]]) for tokens in some] for row, some in enumerate(continuations)]
    places = [
        (row, place) for row, some in enumerate(continuations) for place, tokens in enumerate(some) if len(tokens) > 1
    ]
    if places:
        tails = [continuations[row][place] for row, place in places]
        rows = torch.tensor([row for row, _ in places])
        # Of a model over several GPUs each layer's part of the cache is on its own; those on the CPU go with all.
        output.past_key_values.batch_select_indices(rows)
        rest = _of_tails(forward, output.past_key_values, mask[rows], tails, pad)
        for (row, place), value in zip(places, rest.tolist(), strict=True):
            sums[row][place] += value
    return [
        [total / len(tokens) for total, tokens in zip(of_row, some, strict=True)]
        for of_row, some in zip(sums, continuations, strict=True)
    ]


def _of_tails(
    forward: Forward, cache: Any, mask: torch.Tensor, continuations: Sequence[Sequence[int]], pad: int
) -> torch.Tensor:
    """The summed log-likelihood of all tokens of continuations but the first, float32 [n]; the cache grows."""
    import torch

    longest = max(map(len, continuations))
    ids = mask.new_full((len(continuations), longest), pad)
    for row, tokens in enumerate(continuations):
        ids[row, : len(tokens)] = ids.new_tensor(tokens)
    lengths = ids.new_tensor([len(tokens) for tokens in continuations])[:, None]
    there = torch.arange(longest, device=ids.device) < lengths
    # The last token of a continuation is read by nobody.
    given, wanted, counted = ids[:, :-1], ids[:, 1:], there[:, 1:]
    steps = torch.arange(longest - 1, device=ids.device)
    output = forward(
        {
            "input_ids": given,
            "attention_mask": torch.cat([mask, counted.to(mask.dtype)], dim=1),
            "position_ids": mask.long().sum(-1, keepdim=True) + steps,
            "past_key_values": cache,
        },
        only_last=False,
    )
    values: torch.Tensor = output.logits.float().log_softmax(dim=-1).gather(-1, wanted[..., None])[..., 0]
    return values.masked_fill(~counted, 0).sum(-1)
