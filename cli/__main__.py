"""``python -m audio_compositionality.evaluator`` is ``audio-compositionality``."""

import sys

from .command_line import main

if __name__ == "__main__":
    sys.exit(main())
