"""The contract of Headrace, held by a scheduler that is not part of it."""

import pytest
from my_scheduler import most_room

from headrace.checks import PROMISES, Subject
from headrace.checks.promises import check_promise


@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_holds(promise: str) -> None:
    assert check_promise(promise, Subject(most_room)).failures == ()
