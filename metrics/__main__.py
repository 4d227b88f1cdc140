"""`python -m audio_compositionality.metrics`: register the metrics with `evaluate` and say where."""

from . import register

if __name__ == "__main__":
    for path in register():
        print(f'evaluate.load("{path.stem}") now finds {path}')
