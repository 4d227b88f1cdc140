"""Layers: which files belong to a model and its twin, the table, the lines of a figure, and an empty folder."""

import json

import pytest

from studies import layers


@pytest.fixture
def folder(tmp_path):
    """Three layers of a model and its twin, one layer of another model, and the plain description."""
    (tmp_path / "representations").mkdir()
    for model, depths, start in (("net", 3, 0.2), ("untrained-net", 3, 0.1), ("flat", 1, 0.5), (layers.PLAIN, 1, 0.4)):
        for depth in range(depths):
            name = f"{model}@{depth}" if depths > 1 else model
            scores = dict.fromkeys(layers.SCORES, start + depth / 10)
            scores |= {"Instances: scene": None} if name == "net@1" else {}
            text = json.dumps({"representation": name, "model": model, "scores": scores})
            (tmp_path / "representations" / f"{name}.json").write_text(text)
    return tmp_path


def test_the_table_has_the_models_with_several_layers_and_a_twin(folder, capsys):
    layers.main(["--out", str(folder)])
    _, _, _, _, row = capsys.readouterr().out.strip().splitlines()
    plain, absent = ".20 (.10), .30 (.20), .40 (.30)", ".20 (.10), – (.20), .40 (.30)"
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        "net",
        "0, 1, 2",
        *[plain] * 3,
        absent,
        *[plain] * 4,
    ]


def test_a_figure_has_a_panel_per_score_with_both_models(folder):
    figure = layers.figure_of("net", layers.read_layers(folder))
    assert [panel.get_title() for panel in figure.axes] == list(layers.SCORES)
    own, twin, plain = (list(line.get_ydata()) for line in figure.axes[0].lines)
    assert (own, twin, plain) == ([0.2, pytest.approx(0.3), 0.4], [0.1, 0.2, pytest.approx(0.3)], [0.4, 0.4])


def test_one_figure_per_model_is_written_and_an_empty_folder_is_refused(folder, tmp_path, capsys):
    layers.main(["--out", str(folder), "--figures", str(tmp_path / "figures")])
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["layers-net.svg"]
    with pytest.raises(SystemExit):
        layers.main(["--out", str(tmp_path / "none")])
    assert "run studies.downstream" in capsys.readouterr().err
