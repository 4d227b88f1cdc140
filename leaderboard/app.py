"""The Space: reads the results of its own organisation, and shows them."""

from __future__ import annotations

import logging
import os

from audio_compositionality.leaderboard.space import launch

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    # ORG/NAME, set by Spaces. A secret may be set but empty.
    launch(os.environ.get("SPACE_ID", ""), checks=bool(os.environ.get("HF_TOKEN")))
