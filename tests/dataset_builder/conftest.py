"""A recipe as another package could bring it."""

from collections.abc import Iterator

import pytest

from .recipes.toy import Toys, registered


@pytest.fixture
def toys() -> Iterator[Toys]:
    """A recipe that is known for the time of a test: clips of different lengths, lists of clips."""
    recipe = Toys()
    with registered(recipe):
        yield recipe
