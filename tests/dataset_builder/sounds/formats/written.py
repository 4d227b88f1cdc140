"""Events of recordings of 10 s, written in each format of strong labels as its authors have them."""

import json

from audio_compositionality.dataset_builder.sounds.formats.parsing import PLAIN_COLUMNS, STRONG_COLUMNS

SECONDS = 10.0
STRONG = tuple(STRONG_COLUMNS.values())
SILENCE = ("", "", "")


def rows(*lines):
    return "".join("\t".join(map(str, line)) + "\n" for line in lines)


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def jams(annotations, duration=SECONDS):
    return json.dumps({"file_metadata": {"duration": duration, "title": ""}, "annotations": annotations})


def observation(time, duration, value, confidence=1.0):
    return {"time": time, "duration": duration, "value": value, "confidence": confidence}


def events_of(annotation):
    return [(event.onset, event.offset, event.label) for event in annotation.events]


def _lines(clips, ending=".wav"):
    return [(f"{name}{ending}", *event) for name, events in clips.items() for event in events or [SILENCE]]


def _each_second(event):
    """The whole seconds of an event; one that has none stays as it is."""
    onset, offset, label = event
    if not (isinstance(onset, int) and isinstance(offset, int) and 0 <= onset < offset):
        return [event]
    return [(second, second + 1, label) for second in range(onset, offset)]


def _audioset(folder, clips):
    labels = {label for events in clips.values() for _, _, label in events if label}
    write(folder, "mid_to_display_name.tsv", rows(*((f"/m/{label}", label) for label in sorted(labels))))
    lines = [(name, *times, f"/m/{label}" * bool(label)) for name, events in clips.items() for *times, label in events]
    header = ("segment_id", "start_time_seconds", "end_time_seconds", "label")
    return write(folder, "labels.tsv", rows(header, *lines))


def _audiotime(folder, clips):
    content = {name: {"event": {}, "caption": ""} for name in clips}
    for name, events in clips.items():
        for onset, offset, label in events:
            content[name]["event"].setdefault(label, []).append([onset, offset])
    return write(folder, "timestamp_captions.json", json.dumps(content))


def _jams(folder, clips):
    def length(onset, offset):
        return offset if isinstance(onset, str) or isinstance(offset, str) else offset - onset

    for name, events in clips.items():
        data = [observation(onset, length(onset, offset), label) for onset, offset, label in events]
        write(folder, f"jams/{name}.jams", jams([{"namespace": "tag_open", "data": data}]))
    return folder / "jams"


def _maestro(folder, clips):
    lines = [(name, *second) for name, *event in _lines(clips) for second in _each_second(event)]
    return write(folder, "labels.csv", rows(STRONG, *lines))


def _maestro_soft(folder, clips):
    for name, events in clips.items():
        # Every class has all seconds; those in which nobody heard it have no share.
        lines = [(*second, 1.0) for event in events for second in _each_second(event)] or [(9, 10, "Dog", 0)]
        write(folder, f"soft/{name}.txt", rows(*lines))
    return folder / "soft"


def _text(folder, clips):
    for name, events in clips.items():
        write(folder, f"text/{name}.txt", rows(*events))
    return folder / "text"


def _table(folder, clips):
    text = rows(tuple(names[0] for names in PLAIN_COLUMNS.values()), *_lines(clips)).replace("\t", ",")
    return write(folder, "labels.csv", text)


def _raven(folder, clips):
    header = ("Selection", "View", "Channel", "Begin Time (s)", "End Time (s)", "Low Freq (Hz)", "Species")
    for name, events in clips.items():
        # Raven lists a selection once for each view.
        views = [(n, view, 1, on, off, 900, label) for n, (on, off, label) in enumerate(events, 1) for view in "WS"]
        write(folder, f"raven/{name}.Table.1.selections.txt", rows(header, *views))
    return folder / "raven"


WRITERS = {
    "audioset-strong": _audioset,
    "audiotime": _audiotime,
    "desed": lambda folder, clips: write(folder, "labels.tsv", rows(STRONG, *_lines(clips))),
    "jams": _jams,
    "maestro": _maestro,
    "maestro-soft": _maestro_soft,
    "raven": _raven,
    "table": _table,
    "text": _text,
}
"""Of each format a function of a folder and of events, (onset, offset, label), by recording: it gives the path."""

WHOLE_SECONDS = ("maestro", "maestro-soft")
"""Formats with a row for each second."""
