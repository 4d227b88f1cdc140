"""The table of the four axes, from results of made-up scores."""

from __future__ import annotations

import numpy as np

from studies.tables import main


def test_bold_is_who_is_above_every_twin_and_every_level_meter(tmp_path, write_results, capsys):
    def scored(name, mean, seed=0, **changes):
        noise = np.random.default_rng(len(name) + seed).normal(0, 0.05, 384)
        write_results(tmp_path, [name], tasks=["rate_binding"], scores=mean + noise, **changes)

    for model, mean in (("high", 0.8), ("low", 0.45), ("log-mel-statistics", 0.2), ("level-statistics", 0.0)):
        scored(model, mean)
    for seed in range(3):
        for model in ("high", "low"):
            scored(f"untrained:{model}", 0.3 + 0.1 * seed, seed, model={"revision": f"seed-{seed}"})
    main(["axes", str(tmp_path)])
    page = capsys.readouterr().out
    head, _, row, *_ = page.splitlines()
    cells = dict(zip(head.strip("| ").split(" | "), row.strip("| ").split(" | "), strict=True))
    assert set(cells) > {"high", "high: its 3 twins", "low", "low: its 3 twins", "level-statistics"}
    assert cells["high"].startswith("**")
    assert not cells["low"].startswith("**")
    assert " to " in cells["low: its 3 twins"]
    assert "untrained:low (seed-2)" in page
