"""What the real NeMo Relay writes to its event file, and what happens when it cannot be used."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter

import nemo_relay
import pytest
import trio
from exported_calls import PARTIAL, exported_registry, scripted_run

from codemode import open_service
from codemode.exporters import relay, relay_exporter
from codemode.exporters.relay import missing_from_relay
from tool_bindings.annotated import SCHEMA, ProjectionPolicy

RUNS = 50
STATUS_CODES = {"plain": "OK", "broken": "ERROR", "partial": "ERROR", "foreign": "UNSET"}


@pytest.fixture
def registry():
    return exported_registry()


class EventFile:
    """Relay's own event file, as its exporter writes it."""

    def __init__(self, directory):
        config = nemo_relay.AtofExporterConfig()
        config.output_directory = str(directory)
        config.filename = "events.jsonl"
        config.mode = nemo_relay.AtofExporterMode.Overwrite
        self._exporter = nemo_relay.AtofExporter(config)
        self._path = directory / "events.jsonl"

    def __enter__(self):
        self._exporter.register("test-events")
        return self

    def __exit__(self, *_):
        self._exporter.shutdown()
        self._exporter.deregister("test-events")

    def read(self):
        """Return the start and the end event of each tool call, by call id."""
        self._exporter.force_flush()
        events = {}
        for line in self._path.read_text("utf-8").splitlines():
            event = json.loads(line)
            if event["category"] == "tool":
                call = events.setdefault(event["category_profile"]["tool_call_id"], {})
                assert event["scope_category"] not in call, "no lifecycle begins or ends twice"
                call[event["scope_category"]] = event
        return events


@pytest.fixture
def event_file(tmp_path):
    with EventFile(tmp_path) as events:
        yield events


async def test_a_real_run_and_its_calls_are_written_with_parents_statuses_and_annotations(
    registry, event_file
):
    async with open_service(registry) as service:
        with relay_exporter(registry) as watch:
            outcome = await service.run_code(
                "import asyncio\n"
                "await asyncio.gather(tools.plain(), tools.foreign(), tools.partial())\n"
                "await tools.broken()"
            )
        assert (False, 0, 0) == (outcome.ok, watch.open_calls, watch.failures)
    events = event_file.read()
    nested = {call.id: call.tool for call in outcome.calls}
    assert {outcome.run_id, *nested} == set(events)
    assert set(STATUS_CODES) == set(nested.values())
    run = events[outcome.run_id]
    assert ("run_code", "ERROR", "CODE_RUN_FAILED") == (
        run["end"]["name"],
        run["end"]["metadata"]["otel.status_code"],
        run["end"]["metadata"]["error.type"],
    )
    for call_id, tool in nested.items():
        start, end = events[call_id]["start"], events[call_id]["end"]
        assert run["start"]["uuid"] == start["parent_uuid"] == end["parent_uuid"]
        assert (tool, STATUS_CODES[tool]) == (end["name"], end["metadata"]["otel.status_code"])
        annotation = end["category_profile"]["tool_result_annotation"]
        assert {
            "toolCallId": call_id,
            "parentToolCallId": outcome.run_id,
            "runId": outcome.run_id,
        } == annotation["correlation"]


async def test_the_annotation_shows_what_the_policy_shows_and_nothing_else_is_payload(registry, event_file):
    with relay_exporter(registry):
        await registry.dispatch("partial", {"password": "secret detail"}, call_id="default")
    default = event_file.read()["default"]
    assert {
        "schema": SCHEMA,
        "status": "failed",
        "error": {"code": "partial"},
        "correlation": {"toolCallId": "default"},
    } == default["end"]["category_profile"]["tool_result_annotation"]
    assert "secret" not in json.dumps(default)
    with relay_exporter(registry, annotation=ProjectionPolicy(keep=["content"])):
        await registry.dispatch("partial", {}, call_id="content")
    assert {"content": PARTIAL["content"]} == event_file.read()["content"]["end"]["category_profile"][
        "tool_result_annotation"
    ]


async def test_fifty_runs_at_a_time_have_the_right_parents(registry, event_file):
    with relay_exporter(registry) as watch:
        async with trio.open_nursery() as nursery:
            for number in range(RUNS):
                nursery.start_soon(scripted_run, registry, number, list(STATUS_CODES))
    assert 0 == watch.failures
    events = event_file.read()
    assert RUNS * (1 + len(STATUS_CODES)) == len(events)
    codes = Counter()
    for call_id, call in events.items():
        run, _, inner = call_id.partition(":")
        if inner:
            assert events[run]["start"]["uuid"] == call["end"]["parent_uuid"]
        assert events[run]["start"]["propagation_root_uuid"] == call["end"]["propagation_root_uuid"]
        codes[call["end"]["metadata"]["otel.status_code"]] += 1
    assert RUNS == len({events[f"run-{number}"]["end"]["propagation_root_uuid"] for number in range(RUNS)})
    assert {"OK": 2 * RUNS, "ERROR": 2 * RUNS, "UNSET": RUNS} == codes


async def test_a_direct_call_belongs_to_the_scope_of_the_application(registry, event_file):
    with relay_exporter(registry), nemo_relay.scope.scope("turn", nemo_relay.ScopeType.Agent) as turn:
        await registry.dispatch("plain", {}, call_id="c")
        assert "turn" == nemo_relay.scope.get_handle().name
    assert turn.uuid == event_file.read()["c"]["start"]["parent_uuid"]


async def test_a_cancelled_call_ends_with_unset_status(registry, event_file, autojump_clock):
    with relay_exporter(registry), trio.move_on_after(1):
        await registry.dispatch("wait", {}, call_id="c")
    assert "UNSET" == event_file.read()["c"]["end"]["metadata"]["otel.status_code"]


async def test_a_failing_redactor_shows_no_annotation_and_ends_the_lifecycle(registry, event_file):
    policy = ProjectionPolicy(redact=lambda shown: shown["not there"])
    with relay_exporter(registry, annotation=policy):
        assert {"done": 2} == (await registry.dispatch("partial", {}, call_id="c")).value
    end = event_file.read()["c"]["end"]
    assert {"otel.status_code": "ERROR", "error.type": "_OTHER"} == end["metadata"]
    assert "secret" not in json.dumps(end)


async def test_leaving_the_block_delivers_everything(registry):
    seen = []
    nemo_relay.subscribers.register("test-seen", lambda event: seen.append(event.scope_category))
    try:
        with relay_exporter(registry):
            for _ in range(20):
                await registry.dispatch("plain", {})
        assert {"start": 20, "end": 20} == Counter(seen)
    finally:
        nemo_relay.subscribers.deregister("test-seen")


async def test_a_relay_that_does_not_deliver_holds_up_no_call_and_its_queue_is_bounded(registry, caplog):
    goes_on = threading.Event()
    seen = []

    def slow(event):
        goes_on.wait()
        seen.append(event.category_profile["tool_call_id"])

    nemo_relay.subscribers.register("test-slow", slow)
    try:
        with relay_exporter(registry, max_pending=10, flush_seconds=0):
            for _ in range(50):
                assert 1 == (await registry.dispatch("plain", {})).value
        goes_on.set()
        nemo_relay.subscribers.flush()
    finally:
        goes_on.set()
        nemo_relay.subscribers.deregister("test-slow")
    assert 10 == len(seen)
    assert 5 == len(set(seen)), "what has begun ends"
    assert ["calls are left out until it has", "not delivered everything within 0 s"] == [
        record.getMessage()[-len(expected) :]
        for record, expected in zip(
            caplog.records,
            ("calls are left out until it has", "not delivered everything within 0 s"),
            strict=True,
        )
    ]


async def test_a_relay_that_fails_changes_no_result_and_is_logged_once(registry, caplog, monkeypatch):
    def fail(*_arguments, **_options):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(nemo_relay.tools, "call_end", fail)
    with relay_exporter(registry) as watch:
        for _ in range(3):
            assert 1 == (await registry.dispatch("plain", {})).value
    assert 3 == watch.failures
    (record,) = caplog.records
    assert "secret" not in record.getMessage()


async def test_without_relay_calls_go_on_and_a_warning_says_what_to_install(registry, caplog, monkeypatch):
    monkeypatch.setitem(sys.modules, "nemo_relay", None)
    with relay_exporter(registry) as watch:
        assert 1 == (await registry.dispatch("plain", {})).value
    assert None is watch
    assert "pip install 'codemode[relay]'" in caplog.text


def test_a_relay_that_lacks_something_is_not_used(monkeypatch):
    assert None is missing_from_relay()
    monkeypatch.setattr(relay, "_NEEDED", ("tools.call", "tools.not_there", "neither.this"))
    assert "the installed version has no tools.not_there, neither.this;" in missing_from_relay()
