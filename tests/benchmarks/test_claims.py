"""What is made of the rows: ratios and their bounds, the committed ones, tables, JSON, the picture."""

from __future__ import annotations

import json
import sys

import pytest
from measuring import baseline, report
from measuring.benchmark import Answer
from measuring.claims import Claim, judge
from measuring.plot import Panel, PlotError, draw
from measuring.rounds import Measured, Row

from codemode.measurement import Samples


def row(*values, unit="s"):
    return Row(unit, Samples(values), {number + 1: value for number, value in enumerate(values)})


@pytest.fixture
def measured():
    return Measured(
        rows={"a/x": row(2.0, 4.0, 9.0), "b/y": row(1.0, 2.0, 3.0), "a/size": row(5e6, unit="B")},
        failures={"c": "cannot be installed: no network"},
        facts={"a": {"python": "3.12.0"}},
    )


def test_a_figure_is_the_ratio_of_the_medians_and_its_spread_that_of_the_rounds(measured):
    judged = judge(Claim("x / y", "a/x", "b/y", 2.0), measured)
    assert (2.0, (2.0, 2.5), "ok") == (judged.value, judged.quartiles, judged.verdict)
    assert ("2.00x", "2x") == (judged.written, judged.bound)


def test_a_figure_above_its_bound_is_over_and_one_without_a_bound_says_nothing(measured):
    assert "OVER" == judge(Claim("x / y", "a/x", "b/y", 1.99), measured).verdict
    assert "" == judge(Claim("x / y", "a/x", "b/y"), measured).verdict


def test_a_claim_about_one_row_is_in_its_unit(measured):
    judged = judge(Claim("size", "a/size", at_most=4e6), measured)
    assert ("5.00 MB", "4.00 MB", "OVER") == (judged.written, judged.bound, judged.verdict)


@pytest.mark.parametrize("claim", [Claim("?", "c/z", "b/y", 1), Claim("?", "b/y", "c/z"), Claim("?", "c/z")])
def test_a_claim_whose_row_was_not_measured_is_missing_whatever_its_bound(claim, measured):
    assert "missing" == judge(claim, measured).verdict


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ([Claim("kept", "a/x", "b/y", 3)], 0),
        ([Claim("kept", "a/x", "b/y", 3), Claim("over", "a/x", "b/y", 1)], 1),
        ([Claim("missing", "c/z", "b/y")], 1),
    ],
)
def test_the_exit_status_is_1_when_a_bound_is_exceeded_or_a_figure_is_missing(claims, status, measured):
    assert status == Answer(measured, [judge(claim, measured) for claim in claims], 3).status


def test_the_tables_show_every_row_every_claim_and_what_was_not_measured(measured):
    text = Answer(measured, [judge(Claim("x / y", "a/x", "b/y", 2), measured)], 3).tables()
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "a/x 4.00 s 3.00 s .. 6.50 s 2.00 s 3" in lines
    assert "c not measured: cannot be installed: no network" in lines
    assert "x / y 2.00x 2.00 .. 2.50 2x ok" in lines


def test_the_json_has_rows_claims_failures_and_what_the_drivers_said(measured, tmp_path):
    answer = Answer(measured, [judge(Claim("x / y", "a/x", "b/y", 1), measured)], 3)
    answer.write(str(tmp_path / "new" / "out.json"))
    record = json.loads((tmp_path / "new" / "out.json").read_text())
    assert {"machine", "rounds", "rows", "claims", "failures", "facts"} == set(record)
    assert 4.0 == record["rows"]["a/x"]["median"]
    assert [3.0, 6.5] == record["rows"]["a/x"]["quartiles"]
    (claim,) = record["claims"]
    assert (2.0, 1, "over") == (claim["figure"], claim["at_most"], claim["verdict"])
    assert record == json.loads(json.dumps(report.as_json(measured, answer.judged, 3)))


@pytest.fixture
def committed(tmp_path):
    file = tmp_path / "baseline.json"
    file.write_text(json.dumps({"x / y": 1.0, "gone": 2.0}))
    return file


@pytest.mark.parametrize(("found", "verdict"), [(0.4, "ok"), (1.5, "ok"), (1.51, "WORSE")])
def test_a_ratio_may_be_up_to_one_and_a_half_times_the_committed_one(found, verdict, committed):
    rows = Measured(rows={"a/x": row(found), "b/y": row(1.0)})
    change = baseline.compare(committed, [judge(Claim("x / y", "a/x", "b/y"), rows)])[0]
    assert (verdict, verdict == "WORSE") == (change.verdict, change.fails)


def test_a_committed_ratio_that_is_not_measured_fails_and_a_new_one_does_not(committed, measured):
    claims = [Claim("x / y", "a/x", "b/y"), Claim("new", "b/y", "a/x")]
    changes = {c.text: c for c in baseline.compare(committed, [judge(each, measured) for each in claims])}
    assert {"x / y": "WORSE", "gone": "missing", "new": "new"} == {t: c.verdict for t, c in changes.items()}
    assert changes["gone"].fails
    assert not changes["new"].fails
    assert 4 == len(baseline.table(list(changes.values())).splitlines())


def test_a_baseline_keeps_ratios_only_and_is_what_the_same_run_is_compared_with(measured, tmp_path):
    file = tmp_path / "baseline.json"
    judged = [judge(Claim("x / y", "a/x", "b/y", 1), measured), judge(Claim("size", "a/size"), measured)]
    baseline.write(file, judged)
    assert {"x / y": 2.0} == json.loads(file.read_text())
    assert ["ok"] == [change.verdict for change in baseline.compare(file, judged)]


def test_no_baseline_is_written_while_a_figure_is_missing(measured, tmp_path):
    with pytest.raises(ValueError, match="no figure for: z / y"):
        baseline.write(tmp_path / "b.json", [judge(Claim("z / y", "c/z", "b/y"), measured)])
    assert [] == list(tmp_path.iterdir())


def test_a_picture_shows_the_measured_bars_of_each_panel(measured, tmp_path):
    pytest.importorskip("matplotlib")
    panels = [
        Panel("Two of three", (("a/x", "ours"), ("b/y", "theirs"), ("c/z", "absent"))),
        Panel("Nobody", (("c/z", "absent"),)),
    ]
    draw(measured, panels, tmp_path / "p" / "out.svg", ours=frozenset({"a"}))
    text = (tmp_path / "p" / "out.svg").read_text()
    assert [True, True, True, False, False] == [
        word in text for word in ("Two of three", "ours", "theirs", "absent", "Nobody")
    ]


def test_without_the_library_for_pictures_the_error_says_how_to_get_it(measured, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PlotError, match=r"pip install 'codemode\[bench\]'"):
        draw(measured, [Panel("x", (("a/x", "ours"),))], tmp_path / "out.svg", ours=frozenset())
