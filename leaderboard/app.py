"""The Space: reads the results of the organisation that it belongs to, and shows them."""

from __future__ import annotations

import logging
import os

from audio_compositionality.leaderboard.space import launch

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    # ORG/NAME; Spaces set it. A secret may be there and empty.
    launch(os.environ.get("SPACE_ID", ""), checks=bool(os.environ.get("HF_TOKEN")))
