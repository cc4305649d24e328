"""How long does recording one nested call take?

Unit: microseconds for the pair of events (start and end) of one call, in a file.
Method: pairs are appended to a log in a temporary directory, with arguments and content of about 100 bytes
and of 10 000; the best of five rounds counts, since the question is the cost of our code.
Would change a decision: above 100 microseconds for small events, recording would cost as much as the call
itself, and the writes would have to be gathered.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from codemode.session_events import APPEND
from codemode.session_log import SessionLog

PAIRS = 2000
ROUNDS = 5


def main() -> None:
    """Print one line per size."""
    for size in (100, 10_000):
        print(f"{size:>6} bytes  {best(size):8.1f} us per pair")


def best(size: int) -> float:
    """Return the best round's microseconds per pair."""
    return min(one_round(size) for _ in range(ROUNDS))


def one_round(size: int) -> float:
    """Record one run of many nested calls."""
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
            log.append("tool/code-dispatch-start", data)
            content = [{"type": "text", "text": text}]
            log.append("tool/code-dispatch", {**data, "isError": False, "content": content})
        took = time.perf_counter() - began
        block = {"type": "tool-result", "toolCallId": "c", "content": [], "isError": False}
        message = {"id": "r", "role": "user", "source": {"kind": "tool", "callId": "c"}, "content": [block]}
        log.append("tool/result", {**step, "message": message}, APPEND, [call["seq"]])
    return took / PAIRS * 1e6


if __name__ == "__main__":
    main()
