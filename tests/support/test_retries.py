from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from audio_compositionality.support.retries import requested_wait


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "30"}, 30.0),
        ({"retry-after": " 0 "}, 0.0),
        *(({"Retry-After": text}, None) for text in ("soon", "²", "1e9", "")),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "1.5"}, 1.5),
        ({"Retry-After": "1."}, None),
        ({"Retry-After": "Thu, 01 Jan 2026 00:00:00 GMT"}, 0.0),
        ({"RateLimit": '"api";r=0;t=55', "Retry-After": "3"}, 55.0),
        ({"RateLimit": '"api";r=7;t=55', "Retry-After": "3"}, 3.0),
        ({"RateLimit": f'"api";r=0;t={"9" * 400}', "Retry-After": "3"}, 3.0),
        ({"RateLimit": f'"api";r=0;t={"9" * 5000}', "Retry-After": "3"}, 3.0),
    ],
)
def test_what_a_server_asks_to_wait(headers, seconds):
    assert requested_wait(headers) == seconds


def test_a_date_that_is_to_come():
    moment = datetime.now(UTC) + timedelta(seconds=90)
    assert requested_wait({"Retry-After": format_datetime(moment, usegmt=True)}) == pytest.approx(89.5, abs=5)
