"""An event log as one HTML page: every call with what it was given and gave, nested ones on a time scale.

The page needs nothing beside itself, runs no script and loads nothing. All text of programs and tools is
escaped twice over: characters that could reorder or hide what stands beside them are written as escapes, and
markup is text.

Knows: how events look on a page. Does not know: files, how logs are read.
"""

from __future__ import annotations

import dataclasses
import html
from typing import TYPE_CHECKING, Any, Final

from codemode.event_text import arguments_preview, call_summary, duration, ending_of, moment, plural, text_of
from codemode.log_view import LogView
from codemode.session_events import HEADER, SessionEvent
from codemode.terminal import escape, one_line
from sandbox.values import JsonValue, decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MAX_TEXT_CHARS: Final = 100_000
"""Characters of one text before it is cut. Arbitrary: beyond that a page is no place to read it."""
MAX_NESTED_CHARS: Final = 10_000
"""The same for what a nested call showed. Arbitrary."""
_SUMMARY_COLUMNS: Final = 160

_STYLE: Final = """
:root { color-scheme: light dark; --fg: #1c1e21; --bg: #fff; --soft: #5c6370; --line: #dcdfe4; --box: #f5f6f8;
  --ok: #1a7f37; --failed: #c62828; --unknown: #9a6700; --bar: #3b6fd6; }
@media (prefers-color-scheme: dark) { :root { --fg: #e4e6ea; --bg: #16181c; --soft: #9aa2ae; --line: #343941;
  --box: #1f2228; --ok: #57c275; --failed: #ff7b72; --unknown: #e0b050; --bar: #6f9bff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; color: var(--fg); background: var(--bg);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.25rem; margin: 0; overflow-wrap: anywhere; }
header p, footer p, .soft { color: var(--soft); }
header p { margin: .25rem 0 1.25rem; }
pre, code, .mono { font: 13px/1.45 ui-monospace, monospace; }
pre { margin: .5rem 0; padding: .6rem .75rem; background: var(--box); border-radius: 6px;
  white-space: pre-wrap; overflow-wrap: anywhere; max-height: 22rem; overflow-y: auto; }
details.call { border: 1px solid var(--line); border-radius: 8px; margin: .6rem 0; padding: .5rem .75rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
summary > b { margin-right: .5rem; }
.ok { color: var(--ok); } .failed { color: var(--failed); } .unknown { color: var(--unknown); }
.said, .note { margin: .6rem 0; padding-left: .75rem; border-left: 3px solid var(--line);
  overflow-wrap: anywhere; white-space: pre-wrap; }
.note { border-color: var(--unknown); }
h2 { font-size: .8rem; font-weight: 600; color: var(--soft); margin: .75rem 0 .1rem; }
.nested > summary { display: grid; grid-template-columns: 5.5rem 5rem 5rem minmax(0, 1fr) 9rem;
  column-gap: .75rem; align-items: center; list-style: none; }
.nested > summary::-webkit-details-marker { display: none; }
.nested > summary:hover { background: var(--box); }
.nested code { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.right { text-align: right; }
.scale { position: relative; height: .55rem; background: var(--box); border-radius: 3px; }
.scale > i { position: absolute; top: 0; bottom: 0; min-width: 2px; background: var(--bar);
  border-radius: 3px; }
@media (max-width: 45rem) { .nested > summary { grid-template-columns: 4.5rem 4rem 4rem minmax(0, 1fr); }
  .scale { display: none; } body { padding: .75rem; } }
footer { margin-top: 1.5rem; border-top: 1px solid var(--line); }
"""

_HEAD: Final = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<title>codemode events</title>
<style>{_STYLE}</style>
</head>
<body>"""


@dataclasses.dataclass(slots=True)
class _Nested:
    name: str
    arguments: JsonValue
    began: int
    ended: int | None = None
    status: str = "unknown"
    text: str = ""


@dataclasses.dataclass(slots=True)
class _Call:
    name: str
    arguments: str
    began: int
    nested: dict[str, _Nested] = dataclasses.field(default_factory=dict)


class TimelinePage(LogView):
    """Turns the lines of one log into the lines of a page. Holds no more than the calls under way."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[str, _Call] = {}
        self._last_time = 0
        self._count = 0
        self._failed = 0

    def render(self, lines: Iterable[tuple[Path, int, bytes]]) -> Iterator[str]:
        """Yield the page, line by line, while the log is being read.

        Args:
            lines: File, line number and bytes, as `session_file.read_lines` gives them.

        Raises:
            SessionFormatError: This is no event log, or one of another version.
        """
        events = self.reader.events(lines)
        first = next(events)
        yield _HEAD
        yield from _header(first)
        yield from self._item(first)
        for event in events:
            yield from self._item(event)
        yield from self._end()

    def _item(self, event: SessionEvent) -> Iterable[str]:
        self._last_time = event["time"]
        return self.lines_of(event)

    # --- one event each ---

    def loss(self, text: str) -> Iterator[str]:
        """Show where events are lost."""
        yield f'<p class="note">lost {_inline(text)}</p>'

    def turn_end(self, number: int, reason: str) -> Iterator[str]:
        """Show how a turn ended that did not end well."""
        if reason != "completed":
            yield f'<p class="note">turn {number} ended: {_inline(reason)}</p>'

    def user_message(self, event: SessionEvent) -> Iterator[str]:
        """Show a message."""
        yield f'<div class="said"><b>user</b> {_text(text_of(event["data"]["content"]))}</div>'

    def assistant_message(self, event: SessionEvent) -> Iterator[str]:
        """Show a message that is more than calls."""
        blocks = [item for item in event["data"]["message"]["content"] if item["type"] != "tool-call"]
        if blocks:
            yield f'<div class="said"><b>assistant</b> {_text(text_of(blocks))}</div>'

    def call(self, event: SessionEvent) -> tuple[str, ...]:
        """Show nothing before all of a call is known."""
        data = event["data"]
        self._calls[data["callId"]] = _Call(data["name"], data["arguments"], event["time"])
        return ()

    def nested_start(self, event: SessionEvent) -> tuple[str, ...]:
        """Show nothing, as for `call`."""
        data = event["data"]
        call = self._calls.get(data["rootCallId"])
        if call is not None:
            call.nested[data["subCallId"]] = _Nested(data["name"], data["arguments"], event["time"])
        return ()

    def nested_end(self, event: SessionEvent) -> tuple[str, ...]:
        """Show nothing, as for `call`."""
        data = event["data"]
        call = self._calls.get(data["rootCallId"])
        self._count += 1
        self._failed += bool(data["isError"])
        if call is not None:
            nested = call.nested.setdefault(
                data["subCallId"], _Nested(data["name"], data["arguments"], event["time"])
            )
            nested.ended = event["time"]
            status = ending_of(data)
            nested.status = "ok" if status == "succeeded" else status
            # Cut here already: a call may have thousands.
            nested.text = _cut(text_of(data["content"]), MAX_NESTED_CHARS)
        return ()

    def result(self, event: SessionEvent) -> Iterator[str]:
        """Show the whole call."""
        block = event["data"]["message"]["content"][0]
        call_id = block["toolCallId"]
        call = self._calls.pop(call_id, None)
        if call is None:
            call = _Call("a call", "", event["time"])
            self.reader.missing.append(f"no start of {one_line(call_id, 60)}")
        status = "failed" if block["isError"] else "ok"
        yield from self._whole_call(call_id, call, event["time"], status, text_of(block["content"]))

    # --- a call, once everything about it is known ---

    def _whole_call(self, call_id: str, call: _Call, ended: int, status: str, text: str) -> Iterator[str]:
        for sub_id, nested in call.nested.items():
            if nested.ended is None:
                self.note_no_end(nested.name, sub_id)
        took = "?" if status == "unknown" else duration(ended - call.began)
        failed = sum(nested.status == "failed" for nested in call.nested.values())
        counts = f" · {plural(len(call.nested), 'nested call')}" if call.nested else ""
        if failed:
            counts += f', <span class="failed">{failed} failed</span>'
        summary = _inline(one_line(call_summary(call.name, call.arguments), _SUMMARY_COLUMNS))
        is_open = " open" if call.nested or status != "ok" else ""
        yield f'<details class="call"{is_open}>'
        yield (
            f'<summary><b>{_inline(call.name)}</b> <span class="{status}">{status}</span> '
            f'<span class="soft">{took}{counts} · {moment(call.began)} · {_inline(call_id)}</span>'
            f"<br>{summary}</summary>"
        )
        yield from _given(call)
        if text:
            yield f"<h2>Shown</h2><pre>{_text(text)}</pre>"
        if call.nested:
            yield "<h2>Nested calls</h2>"
            for nested in call.nested.values():
                yield from _nested_row(nested, call.began, ended)
        yield "</details>"

    def _end(self) -> Iterator[str]:
        for call_id, call in self._calls.items():
            self.note_no_result(call.name, call_id)
            yield from self._whole_call(call_id, call, self._last_time, "unknown", "")
        self.note_open_turns()
        events, nested = plural(self.reader.seen, "event"), plural(self._count, "nested call")
        failed = f', <span class="failed">{self._failed} failed</span>' if self._failed else ""
        yield f"</main>\n<footer><p>{events}, {nested}{failed}</p>"
        for text in self.reader.missing:
            yield f'<p class="note">missing: {_inline(text)}</p>'
        yield "</footer>\n</body>\n</html>"


def _header(event: SessionEvent) -> Iterator[str]:
    """Yield the head of the page from the first event, which may be another one where a log is damaged."""
    if event["type"] == HEADER:
        data = event["data"]
        yield f"<header><h1>Session {_inline(data['id'])}</h1>"
        yield f"<p>{moment(data['createdAt'], day=True)} · {_inline(data.get('cwd', ''))}</p></header>"
    else:
        yield f"<header><h1>A part of a session</h1><p>{moment(event['time'], day=True)}</p></header>"
    yield "<main>"


def _given(call: _Call) -> Iterator[str]:
    """Yield what a call was given: the program of a run, the arguments of any other call."""
    try:
        arguments: Any = decode(call.arguments)
    except ValueError:
        arguments = None
    if call.name == "run_code" and isinstance(arguments, dict) and isinstance(arguments.get("code"), str):
        yield f"<h2>Program</h2><pre>{_text(arguments['code'])}</pre>"
    elif call.arguments not in ("", "{}"):
        yield f"<h2>Arguments</h2><pre>{_text(call.arguments)}</pre>"


def _nested_row(nested: _Nested, began: int, ended: int) -> Iterator[str]:
    whole = max(ended - began, 1)
    offset = min(max(nested.began - began, 0), whole)
    until = ended if nested.ended is None else nested.ended
    width = min(max(until - nested.began, 0), whole - offset)
    took = "?" if nested.ended is None else duration(nested.ended - nested.began)
    line = one_line(f"{nested.name}({arguments_preview(nested.arguments)})", _SUMMARY_COLUMNS)
    yield (
        '<details class="nested"><summary>'
        f'<span class="soft mono right">+{offset / 1000:.3f} s</span>'
        f'<span class="mono right">{took}</span>'
        f'<span class="{nested.status}">{nested.status}</span><code>{_inline(line)}</code>'
        f'<span class="scale"><i style="left:{100 * offset / whole:.2f}%;width:{100 * width / whole:.2f}%">'
        "</i></span></summary>"
    )
    yield f"<h2>Arguments</h2><pre>{_text(encode(nested.arguments).decode('ascii'))}</pre>"
    if nested.text:
        yield f"<h2>Recorded</h2><pre>{_text(nested.text)}</pre>"
    yield "</details>"


def _inline(text: str) -> str:
    return html.escape(escape(text))


def _text(text: str) -> str:
    return html.escape(escape(_cut(text, MAX_TEXT_CHARS), keep="\n\t"))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}\n… ({len(text) - limit} more characters)"
