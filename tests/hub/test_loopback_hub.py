"""The real clients at work on a loopback Hub: nothing of theirs is replaced."""

from __future__ import annotations

import pytest

from . import clients

_OFFLINE = """if True:
    import sys
    from pathlib import Path
    from audio_compositionality.dataset_builder.open_data import open_data
    from audio_compositionality.encoders.loading.downloads import download_from_hub
    from audio_compositionality.hub.client import Hub
    from audio_compositionality.hub.errors import HubError, Repository
    from audio_compositionality.push_scripts.dataset import push_dataset

    print(Hub().user())
    print(push_dataset(sys.argv[1], "lab").repository.id)
    data = open_data("lab/audio-compositionality").configuration("a_coat")
    print(len(data.rows), next(iter(data.clips())).sample_rate)
    print(download_from_hub("org/model", "config.json").read_text())
    # A Hub on this machine does not open the way to another one.
    from huggingface_hub import get_session
    try:
        get_session().get("https://hub.invalid/config.json")
    except Exception as error:
        print(type(error).__name__)
"""


@pytest.mark.slow
def test_a_hub_on_this_machine_is_reached_offline(hub, start_client, built, monkeypatch):
    """A fresh process: what the clients read from the environment is not ours to change."""
    hub.repositories.create("model", "org/model").commit({"config.json": b"{}"})
    monkeypatch.setattr(
        clients,
        "client_environment",
        lambda *given, _of=clients.client_environment: {**_of(*given), "HF_HUB_OFFLINE": "1"},
    )
    process = start_client(_OFFLINE, str(built))
    said, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert said.splitlines() == ["ada", "lab/audio-compositionality", "2 32000", "{}", "OfflineModeIsEnabled"]
