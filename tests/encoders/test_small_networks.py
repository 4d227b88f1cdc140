"""The small text tower: a text's embedding depends on nothing beside it, and on the order of its words."""

from __future__ import annotations

import numpy as np
import torch

from audio_compositionality.encoders.networks.small_networks import SmallText


def test_padding_and_other_texts_change_nothing_and_order_does() -> None:
    torch.manual_seed(0)
    tower = SmallText(12, 6, 5, 8).eval()
    ids = torch.tensor([[1, 2, 3, 0], [1, 3, 2, 4], [1, 2, 3, 7]])
    mask = torch.tensor([[True, True, True, False], [True] * 4, [True, True, True, False]])
    with torch.inference_mode():
        together = tower(ids, mask)
        alone = tower(ids[:1, :3])
        other = tower(torch.tensor([[1, 3, 2]]))
    np.testing.assert_allclose(together[0], alone[0], atol=1e-6)
    np.testing.assert_array_equal(together[0], together[2])
    assert not np.allclose(alone, other, atol=1e-2)
