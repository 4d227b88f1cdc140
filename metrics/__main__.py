"""`python -m audio_compositionality.metrics`: register the metrics with `evaluate` and say where."""

from audio_compositionality.metrics import register

if __name__ == "__main__":
    for path in register():
        print(f'evaluate.load("{path.stem}") now finds {path}')
