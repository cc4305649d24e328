"""Interleaved rounds: who is asked when, what counts, and what happens when a driver fails."""

from __future__ import annotations

import sys

import pytest
from measuring.drivers import DriverError, DriverSpec, open_driver
from measuring.rounds import measure

DRIVER = """
import os, sys
from measuring.protocol import Case, serve_plain

asked = {asked!r}
count = 0

def note(name, value):
    def sample():
        with open(asked, "a") as file:
            file.write(name + "\\n")
        return value() if callable(value) else value
    return sample

def counted():
    global count
    count += 1
    return float(count)

def broken():
    raise ValueError("no luck")

serve_plain({{
    "counted": Case(note("counted", counted)),
    "several": Case(note("several", [1.0, 3.0, 5.0])),
    "slow": Case(note("slow", 7.0), every=5),
    "broken": Case(note("broken", broken)),
    "deadly": Case(note("deadly", lambda: os._exit(3))),
}}, version="1.2")
"""


@pytest.fixture
def driver(tmp_path):
    asked = tmp_path / "asked"
    asked.write_text("")
    script = tmp_path / "driver.py"
    script.write_text(DRIVER.format(asked=str(asked)))

    def names():
        return asked.read_text().split()

    return DriverSpec("fake", (sys.executable, str(script))), names


def test_the_first_round_warms_up_and_does_not_count(driver):
    spec, asked = driver
    found = measure([spec], 3, only=lambda row: row == "fake/counted")
    assert ["counted"] * 4 == asked()
    assert (2.0, 3.0, 4.0) == found.rows["fake/counted"].samples.values
    assert {1: 2.0, 2: 3.0, 3: 4.0} == found.rows["fake/counted"].by_round


def test_several_samples_of_a_round_all_count_and_their_median_stands_for_the_round(driver):
    found = measure([driver[0]], 2, only=lambda row: row == "fake/several")
    assert (1.0, 3.0, 5.0, 1.0, 3.0, 5.0) == found.rows["fake/several"].samples.values
    assert {1: 3.0, 2: 3.0} == found.rows["fake/several"].by_round


def test_what_takes_long_is_measured_in_the_first_round_and_in_every_fifth_after_it(driver):
    found = measure([driver[0]], 7, only=lambda row: row == "fake/slow")
    assert {1: 7.0, 6: 7.0} == found.rows["fake/slow"].by_round


def test_rounds_alternate_in_their_order_and_no_case_is_asked_twice_in_a_round(driver):
    spec, asked = driver
    measure([spec], 2, only=lambda row: row in ("fake/counted", "fake/several"))
    assert ["several", "counted", "counted", "several", "several", "counted"] == asked()


def test_a_case_that_raises_is_reported_asked_once_and_does_not_stop_the_others(driver):
    spec, asked = driver
    found = measure([spec], 2, only=lambda row: row in ("fake/counted", "fake/broken"))
    assert {"fake/broken": "ValueError: no luck"} == found.failures
    assert 1 == asked().count("broken")
    assert ["fake/counted"] == list(found.rows)


def test_a_driver_that_dies_is_reported_for_every_case_it_still_owed(driver):
    found = measure([driver[0]], 1, only=lambda row: row in ("fake/counted", "fake/deadly"))
    assert "the driver ended (status 3)" == found.failures["fake/deadly"]
    assert "the driver is gone (Broken pipe)" == found.failures["fake/counted"]
    assert {} == found.rows


def test_a_driver_that_does_not_start_is_reported_with_its_last_line(tmp_path):
    script = tmp_path / "driver.py"
    script.write_text("raise SystemExit('no such module')")
    found = measure([DriverSpec("absent", (sys.executable, str(script)))], 1)
    assert {"absent": "the driver ended (status 1); no such module"} == found.failures


def test_a_driver_says_what_it_is_and_is_gone_after_the_body(driver):
    with open_driver(driver[0]) as running:
        assert "1.2" == running.facts["version"]
        assert [1.0] == running.sample("counted")
    with pytest.raises(DriverError, match="the driver is gone"):
        running.sample("counted")


def test_an_unknown_case_is_an_error_of_that_case(driver):
    with open_driver(driver[0]) as running:
        with pytest.raises(DriverError, match="KeyError"):
            running.sample("other")
        assert [1.0] == running.sample("counted")
