"""Number and delays of retries, used for calls to every server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from huggingface_hub.utils import parse_ratelimit_headers  # type: ignore[attr-defined]

WAITS = (1.0, 2.0, 4.0, 8.0)
"""Seconds before each retry unless the server asks for more; the delays of huggingface_hub's own retries."""

LONGEST_WAIT = 300.0
"""Seconds; if a server asks to wait longer, the call fails with a message."""


def requested_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait; None if it does not ask.

    Reads the header RateLimit (draft-ietf-httpapi-ratelimit-headers-09), which huggingface_hub also reads first, or
    Retry-After: a number, which some servers give with decimals, or a date (RFC 9110, 10.2.3).

    Args:
        headers: headers of its answer, by names in any case.
    """
    try:
        limit = parse_ratelimit_headers(headers)
        if limit is not None and limit.remaining == 0:
            return float(limit.reset_in_seconds)
    except (ValueError, OverflowError):
        pass  # a number with hundreds of digits
    value = next((text.strip() for name, text in headers.items() if name.lower() == "retry-after"), "")
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", value):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
