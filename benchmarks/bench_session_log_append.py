"""How long does recording one nested call take?

    python benchmarks/bench_session_log_append.py [--rounds 10]

Unit: seconds for the pair of events (start and end) of one call, in a file.
Method: pairs are appended to a log in a temporary directory, with arguments and content of about 100 bytes
and of 10 000.
Would change a decision: above 100 microseconds for small events, recording would cost as much as the call
itself, and the writes would have to be gathered.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import workloads
from measuring.benchmark import Benchmark, Claim
from measuring.protocol import Case, serve_plain

from codemode.session_events import APPEND, DISPATCH_END, DISPATCH_START
from codemode.session_log import SessionLog
from sandbox.values import encode

PAIRS = workloads.scaled(500)
SIZES = {"100 bytes": 100, "10 000 bytes": 10_000}


def pair_seconds(size: int) -> float:
    """Record one run of many nested calls, and return what one of them took."""
    step = {"turn": 0, "step": 0}
    with tempfile.TemporaryDirectory() as folder, SessionLog.open(Path(folder) / "events.jsonl") as log:
        log.append("turn/start", {"turn": 0})
        log.append("step/start", step)
        call = log.append("tool/call", {**step, "callId": "c", "name": "run_code", "arguments": "{}"})
        text = "x" * size
        began = time.perf_counter()
        for number in range(PAIRS):
            data = {
                "rootCallId": "c",
                "parentCallId": "c",
                "subCallId": f"c:code:{number}",
                "name": "read",
                "arguments": {"file_path": text},
            }
            content = [{"type": "text", "text": text}]
            ended = {**data, "isError": False, "content": content}
            # As nested calls are recorded: the caller writes the text.
            for kind, said in ((DISPATCH_START, data), (DISPATCH_END, ended)):
                log.append_dispatch(kind, "c", data["subCallId"], "read", encode(said))
        took = time.perf_counter() - began
        block = {"type": "tool-result", "toolCallId": "c", "content": [], "isError": False}
        message = {"id": "r", "role": "user", "source": {"kind": "tool", "callId": "c"}, "content": [block]}
        log.append("tool/result", {**step, "message": message}, APPEND, [call["seq"]])
    return took / PAIRS


def serve() -> None:
    """Measure what the coordinator asks for."""

    def case(size: int) -> Case:
        return Case(lambda: pair_seconds(size))

    serve_plain({name: case(size) for name, size in SIZES.items()})


BENCHMARK = Benchmark(
    "session_log_append",
    "How long does recording one nested call take?",
    __file__,
    serve,
    claims=(
        Claim(
            "recording a call, 10 000 bytes / 100 bytes",
            "session_log_append/10 000 bytes",
            "session_log_append/100 bytes",
        ),
    ),
)

if __name__ == "__main__":
    BENCHMARK.main()
