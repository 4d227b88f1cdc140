"""``python -m audio_compositionality`` is the command ``audio-compositionality``."""

import sys

from audio_compositionality.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
