"""No fault is missed: every fault that a log can be given is found, by its code, at its number; and none is made up."""

from __future__ import annotations

from random import Random

import pytest
from healthy_logs import healthy_logs
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from talkfold.audit import findings
from talkfold.audit.findings import FINDINGS
from talkfold.log import LoggedAction
from talkfold.testing.broken_logs import FAULTS

seeds = st.integers(0, 2**32)
few = settings(max_examples=25, suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink])


def test_every_code_has_a_fault_that_shows_it() -> None:
    assert {code for fault in FAULTS.values() for code in fault.codes} == {*FINDINGS}


@settings(max_examples=200)
@given(healthy_logs())
def test_a_healthy_log_shows_nothing(rows: list[LoggedAction]) -> None:
    assert list(findings(rows)) == []


@pytest.mark.parametrize("name", FAULTS)
@few
@given(rows=healthy_logs(), seed=seeds)
def test_a_fault_is_found_where_it_is(name: str, rows: list[LoggedAction], seed: int) -> None:
    fault = FAULTS[name]
    broken = fault.make(rows, Random(seed))
    if broken is None:
        return
    found = {(each.code, each.numbers[0]) for each in findings(broken.rows)}
    assert broken.expected
    assert {code for code, _ in broken.expected} <= {*fault.codes}
    assert broken.expected <= found
