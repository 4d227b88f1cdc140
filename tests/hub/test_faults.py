"""Whatever happens on the way to the Hub, what is sent arrives once and whole, or an error says what to do."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from audio_compositionality.hub.errors import HubError
from audio_compositionality.push_scripts.dataset import push_dataset

from .conftest import DATASET, RESULTS, Submit
from .faults import CHANGES, FEW, PASSING, CutUpload, Delay, Meanwhile, Status, steps_of
from .server import LoopbackHub
from .test_push import commits, expected, pushed
from .test_submit import is_whole, opened

JOURNEYS = {
    "data set": ("dataset", DATASET, "info create tree preupload batch upload verify card commit"),
    "submission": ("dataset", RESULTS, "info tree whoami discussions preupload batch upload verify commit"),
    "model": ("model", "org/short", "info tree discussions commit"),
}
"""What is sent -> its repository, and its steps, in their order; of the model those that differ. Spaces go the way of
the data set."""

WHOLE = ("data set", "submission")
PLACES = [
    *(("data set", step) for step in JOURNEYS["data set"][2].split()),
    *(("submission", step) for step in ("whoami", "discussions", "commit")),
]
"""Each request once: the others of a submission go the way of those of the data set."""

CASES = [
    *(("data set", step, fault) for step in CHANGES for fault in FEW if step in JOURNEYS["data set"][2].split()),
    *(("data set", "commit", fault) for fault in PASSING if fault not in FEW),
    *(("submission", "commit", fault) for fault in ("500 after", "dropped after")),
    *(("model", "commit", fault) for fault in FEW),
    *((name, step, "dropped before") for name in JOURNEYS for step in JOURNEYS[name][2].split() if step not in CHANGES),
]
"""A commit meets every fault, other changes those that differ, reads one."""


@dataclass(frozen=True)
class Journey:
    """Something that is sent: how, and the check that it is there whole and once."""

    name: str
    send: Callable[[], object]
    check: Callable[[], None]

    def order(self, hub: LoopbackHub, step: str, *arguments: object, **options: object):
        """Have a fault happen at a step."""
        kind, name, _ = JOURNEYS[self.name]
        return hub.faults.order(*steps_of(kind, name)[step], *arguments, **options)


@pytest.fixture
def journey(hub, name, built, request):
    def of_data() -> None:
        assert pushed(hub).items() >= expected(built).items()
        assert commits(hub) == 1

    def of_results() -> None:
        assert is_whole(opened(hub))
        assert len(hub.repositories["dataset", RESULTS].discussions) == 1
        if name == "model":
            assert list(opened(hub, "model", "org/short")) == [".eval_results/audio_compositionality.yaml"]
            assert len(hub.repositories["model", "org/short"].discussions) == 1

    if name == "data set":
        return Journey(name, lambda: push_dataset(built, "lab"), of_data)
    for fixture in ("results", "model")[: 1 + (name == "model")]:
        request.getfixturevalue(fixture)
    submit: Submit = request.getfixturevalue("submit")
    return Journey(name, lambda: submit("a_coat", model_card=name == "model"), of_results)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "step", "fault"), CASES)
def test_a_fault_that_passes_costs_time_alone(hub, journey, waits, step, fault):
    journey.order(hub, step, PASSING[fault])
    journey.send()
    journey.check()
    # huggingface_hub asks again at once after some broken requests; a commit that has taken effect need not
    # be waited for, but the pause comes before that is known.
    assert len(waits) <= 1
    if fault == "429":
        assert waits == [8]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "step", "status"),
    [*((*place, 403) for place in PLACES), ("data set", "commit", 401), ("submission", "whoami", 401)],
)
def test_a_refusal_says_what_to_do_and_the_same_command_is_whole_later(hub, journey, waits, step, status):
    journey.order(hub, step, Status(status, message="You may not"))
    # Of a 401 to `whoami`, huggingface_hub has words of its own.
    with pytest.raises(HubError, match=r"You may not|Invalid user token") as caught:
        journey.send()
    assert caught.value.status == status
    assert "settings/tokens" in str(caught.value)
    assert waits == []
    journey.send()
    journey.check()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "step"), PLACES)
def test_a_fault_that_stays_ends_with_advice(hub, journey, waits, step):
    order = journey.order(hub, step, Status(503), times=None)
    with pytest.raises(HubError, match="run the same command later: it goes on from there") as caught:
        journey.send()
    assert caught.value.status == 503
    assert order.fired >= 5
    assert sum(waits) < 200
    hub.faults.orders.clear()
    journey.send()
    journey.check()


@pytest.mark.parametrize(("name", "step"), [(name, step) for name in WHOLE for step in ("upload", "commit")])
def test_what_is_cut_while_it_is_sent_is_sent_again(hub, journey, waits, step):
    journey.order(hub, step, CutUpload(after=100))
    journey.send()
    journey.check()


@pytest.mark.parametrize("name", ["data set"])
def test_more_patience_than_anybody_has_is_not_shown(hub, journey, waits):
    journey.order(hub, "commit", Status(429, retry_after=3600))
    with pytest.raises(HubError, match="it asks to wait 3600 s"):
        journey.send()
    assert waits == []


@pytest.mark.parametrize(("name", "times"), [("data set", 3), ("submission", 1)])
def test_a_commit_at_the_same_time_is_kept(hub, journey, waits, name, times):
    kind, id, _ = JOURNEYS[name]
    others = [f"other-{number}.txt" for number in range(times)]
    left = iter(others)
    journey.order(
        hub, "commit", Meanwhile(lambda: hub.repositories[kind, id].commit({next(left): b"1"}, "other")), times=times
    )
    journey.send()
    assert set(others) <= hub.repositories[kind, id].files().keys()
    assert commits(hub, kind, id) == times + (name == "data set")
    # There is nothing else but what was sent.
    if name == "submission":
        assert is_whole(opened(hub))
    else:
        assert pushed(hub).keys() - set(others) >= {"manifest.json", "README.md"}


@pytest.mark.parametrize("name", ["data set"])
def test_the_same_push_at_the_same_time_is_made_once(hub, journey, built, waits):
    push_dataset(built, "ada")
    content = hub.repositories["dataset", "ada/audio-compositionality"].files()
    del content[".gitattributes"]

    def same() -> None:
        hub.repositories["dataset", DATASET].commit(content, "the same")

    journey.order(hub, "commit", Meanwhile(same))
    journey.send()
    journey.check()
    assert pushed(hub) == content


PUSH = """
import sys
from audio_compositionality.push_scripts.dataset import push_dataset
push_dataset(sys.argv[1], "lab")
"""

SUBMIT = """
import sys
from audio_compositionality.push_scripts.submit import submit_results
results, store, data = sys.argv[1:]
submit_results([results], "lab", data=data, cache=store, device="cpu", progress=False)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "step"), [("data set", "upload"), ("data set", "commit"), ("submission", "commit")])
def test_what_was_killed_is_finished_by_the_same_command(hub, journey, start_client, built, evaluated, name, step):
    result = evaluated / "results" / "org__short" / "1" / "a_coat.json"
    command = (PUSH, built) if name == "data set" else (SUBMIT, result, evaluated / "store", built)
    order = journey.order(hub, step, Delay(60), k=2 if step == "upload" else 1)
    process = start_client(*map(str, command))
    deadline = time.monotonic() + 60
    while not order.fired and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert order.fired
    process.kill()
    process.wait()
    sent = [made.target.split("?")[0] for made in hub.made("PUT") if made.status == 200]
    assert sent
    journey.send()
    journey.check()
    again = [made.target.split("?")[0] for made in hub.made("PUT") if made.status == 200][len(sent) :]
    # What had arrived whole is not sent a second time, but for files whose verification was under way.
    if step == "commit":
        assert not set(sent) & set(again)
