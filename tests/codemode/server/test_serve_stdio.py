"""`codemode serve` over standard input and output, as a client sees it."""

from __future__ import annotations

import base64
import json
import signal
import sys
from pathlib import Path

import processes
import pytest
from jsonschema import Draft202012Validator

pytestmark = pytest.mark.needs_linux


def text_of(result):
    return "\n".join(block["text"] for block in result["content"])


def output_schema(peer, name):
    tools = peer.ask("tools/list")["result"]["tools"]
    return next(tool["outputSchema"] for tool in tools if tool["name"] == name)


def test_servers_behind_the_server_are_called_and_their_changes_announced(fresh_peer, tmp_path):
    server = Path(__file__).resolve().parents[2] / "support" / "mcp_test_server.py"
    entry = {"command": sys.executable, "args": [str(server), "--wire", "change"]}
    config = tmp_path / "servers.json"
    config.write_text(json.dumps({"mcpServers": {"w": entry}}))
    with fresh_peer("--tools", "none", "--mcp", str(config)) as peer:
        (tool,) = peer.ask("tools/list")["result"]["tools"]
        assert "async def mcp__w__x" in tool["description"]
        result = peer.run("return (await tools.mcp__w__x())['content'][0]['type']")
        assert "text" == result["structuredContent"]["result"]
        while not peer.notifications:
            peer.ask("ping")
        assert ["notifications/tools/list_changed"] == [each["method"] for each in peer.notifications]
        (tool,) = peer.ask("tools/list")["result"]["tools"]
        assert "async def mcp__w__y" in tool["description"]
        peer.process.send_signal(signal.SIGTERM)
        assert 0 == peer.process.wait(300)


def test_pictures_of_servers_reach_the_client_and_no_event_log(fresh_peer, tmp_path):
    server = Path(__file__).resolve().parents[2] / "support" / "mcp_test_server.py"
    entry = {"command": sys.executable, "args": [str(server), "--wire", "picture"]}
    config = tmp_path / "servers.json"
    config.write_text(json.dumps({"mcpServers": {"w": entry}}))
    with fresh_peer("--tools", "none", "--mcp", str(config), "--present", "both") as peer:
        result = peer.run("return len((await tools.w.x())['content'])")
        assert 4 == result["structuredContent"]["result"]
        kinds = ["text", "text", "text", "image", "text", "image"]
        assert kinds == [block["type"] for block in result["content"]]
        data = result["content"][3]["data"]
        assert "image/png" == result["content"][3]["mimeType"]
        assert base64.b64decode(data).startswith(b"\x89PNG")
        direct = peer.call("mcp__w__x", {})
        assert ["text", "image", "text", "image"] == [block["type"] for block in direct["content"]]
        assert data == direct["content"][1]["data"]
        listed = [each["uri"] for each in peer.ask("resources/list")["result"]["resources"]]
        (contents,) = peer.ask("resources/read", {"uri": listed[1]})["result"]["contents"]
        assert '"mediaType":"image/png"' in contents["text"]
        assert data not in contents["text"]


def test_the_tool_list_has_the_same_bytes_every_time(peer):
    first, second = (json.dumps(peer.ask("tools/list")["result"]) for _ in range(2))
    assert first == second
    names = [tool["name"] for tool in json.loads(first)["tools"]]
    assert ["run_code", "hold", "noisy", "refuse", "wait_for"] == names
    assert "async def noisy(self, *, word: str) -> str:" in first


def test_text_and_structured_content_tell_the_same_of_a_run(peer):
    result = peer.run("print('seen')\nword = await tools.noisy(word='w')\nreturn {'got': word, 'none': None}")
    assert result["isError"] is False
    structured = result["structuredContent"]
    assert ["seen"] == structured["logs"]
    assert {"got": "w", "none": None} == structured["result"]
    (call,) = structured["calls"]
    assert ("noisy", {"word": "w"}, "succeeded", 2) == (
        call["tool"],
        call["arguments"],
        call["status"],
        call["line"],
    )
    for fact in ("seen", '"got": "w"', "noisy (line 2) succeeded"):
        assert fact in text_of(result)
    Draft202012Validator(output_schema(peer, "run_code")).validate(structured)


def test_a_failed_run_says_kind_line_and_what_was_done(peer):
    code = "print('before')\nawait tools.noisy(word='once')\nx = 1 / 0"
    result = peer.run(code)
    assert result["isError"] is True
    structured = result["structuredContent"]
    assert ("exception", 3, "ZeroDivisionError") == tuple(
        structured["error"][name] for name in ("kind", "line", "errorType")
    )
    assert "result" not in structured
    for fact in ("ZeroDivisionError", "line 3", "before", "noisy", "do not repeat"):
        assert fact in text_of(result)
    Draft202012Validator(output_schema(peer, "run_code")).validate(structured)


def test_a_failing_tool_is_in_the_receipt_with_its_reason(peer):
    code = "try:\n    await tools.refuse()\nexcept ToolCallError as error:\n    return str(error)"
    result = peer.run(code)
    (call,) = result["structuredContent"]["calls"]
    assert ("failed", "it cannot be done") == (call["status"], call["error"]["message"])
    assert "refuse (line 2) failed: it cannot be done" in text_of(result)


def test_what_programs_tools_and_their_children_print_never_reaches_the_stream(peer):
    # The peer checks every line, so an answer is the proof; the words went to standard error.
    assert (
        "ok"
        == peer.run("print('{\"jsonrpc\":')\nreturn await tools.noisy(word='ok')")["structuredContent"][
            "result"
        ]
    )
    assert {"result": "direct"} == peer.call("noisy", {"word": "direct"})["structuredContent"]


def test_tools_offered_one_by_one_answer_and_fail_like_tools(peer):
    result = peer.call("refuse", {})
    assert (True, "Error: it cannot be done") == (result["isError"], text_of(result))
    result = peer.call("noisy", {"wrod": "x"})
    assert "invalid arguments" in text_of(result)
    assert {"name": "ToolArgsError", "code": "INVALID_ARGS"} == result["_meta"]["dev.codemode/error"]
    answer = peer.ask("tools/call", {"name": "unknown", "arguments": {}})
    assert (-32602, "unknown tool 'unknown'; tools/list lists what there is") == (
        answer["error"]["code"],
        answer["error"]["message"],
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"code": "return 1"}, 'missing required property "description"'),
        ({"code": 1, "description": "x"}, '"code" must be a string'),
        ({"code": "return 1", "description": "  "}, "in a few words"),
        ({"code": "return 1", "description": "x", "extra": 1}, '"extra" is not a declared property'),
    ],
)
def test_wrong_arguments_of_run_code_are_named(peer, arguments, words):
    result = peer.call("run_code", arguments)
    assert result["isError"] is True
    assert words in text_of(result)


def test_the_last_report_of_progress_comes_before_the_result(peer):
    params = {
        "name": "run_code",
        "arguments": {"code": "codemode.progress(1, 2)\ncodemode.progress(2, 2)", "description": "a test"},
        "_meta": {"progressToken": "last"},
    }
    number = peer.send("tools/call", params)
    messages = [peer.receive()]
    while "id" not in messages[-1]:
        messages.append(peer.receive())
    assert number == messages[-1]["id"]
    assert {"progressToken": "last", "progress": 2, "total": 2} == messages[-2]["params"]


def test_progress_of_a_program_arrives_while_it_runs(peer, tmp_path):
    # The program goes on only when its progress has been heard of.
    code = (
        f"codemode.progress(1, 4, 'one')\nawait tools.wait_for(mark={str(tmp_path / 'one')!r})\n"
        f"codemode.progress(3, 4)\nawait tools.wait_for(mark={str(tmp_path / 'three')!r})\nreturn 0"
    )
    params = {
        "name": "run_code",
        "arguments": {"code": code, "description": "report"},
        "_meta": {"progressToken": "p"},
    }
    number = peer.send("tools/call", params)
    assert {"progressToken": "p", "progress": 1, "total": 4, "message": "one"} == peer.receive()["params"]
    (tmp_path / "one").touch()
    assert {"progressToken": "p", "progress": 3, "total": 4} == peer.receive()["params"]
    (tmp_path / "three").touch()
    assert 0 == peer.answer(number)["result"]["structuredContent"]["result"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"this is not JSON", -32700),
        (b'{"jsonrpc": "2.0", "id": "m", "method": 5}', -32600),
        (b"[]", -32600),
        (b'{"jsonrpc":"2.0","id":"m","method":"x","params":"' + b"y" * 5_000_000 + b'"}', -32600),
        (b'{"jsonrpc": "2.0", "id": "m", "method": "no/such/method"}', -32601),
        (b'{"jsonrpc": "2.0", "id": "m", "method": "tools/call", "params": {"name": 7}}', -32602),
    ],
)
def test_a_malformed_request_is_answered_and_the_next_one_works(peer, line, code):
    peer.write(line + b"\n")
    message = peer.receive()
    assert code == message["error"]["code"]
    assert 5 == peer.run("return 5")["structuredContent"]["result"]


def test_a_lone_surrogate_in_a_program_and_its_result_breaks_nothing(peer):
    result = peer.run("return '\\ud800' + 'ok'")
    assert "\ufffdok" == result["structuredContent"]["result"]
    peer.write(
        b'{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":"run_code","arguments":'
        b'{"code":"return \'\\ud800\'","description":"x"}}}\n'
    )
    assert "result" in peer.answer("s")


def test_a_result_deeper_than_clients_can_read_is_refused_by_name(peer):
    result = peer.run("x = []\nfor _ in range(300):\n    x = [x]\nreturn x")
    assert "invalid-output" == result["structuredContent"]["error"]["kind"]
    assert "at most 200" in text_of(result)


def test_a_cancelled_run_is_stopped_with_its_calls_and_the_next_one_works(peer, tmp_path, eventually):
    mark = str(tmp_path / "c")
    code = f"await tools.hold(mark={mark!r})"
    number = peer.send("tools/call", {"name": "run_code", "arguments": {"code": code, "description": "hold"}})
    eventually((tmp_path / "c.began").exists)
    peer.send("notifications/cancelled", {"requestId": number, "reason": "enough"}, number=0)
    eventually((tmp_path / "c.stopped").exists)
    assert 6 == peer.run("return 6")["structuredContent"]["result"]


def test_a_thousand_requests_at_once_are_each_answered_run_or_refused(peer):
    # Short runs, so that some do run; 4 at a time and 64 waiting are taken.
    line = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "run_code"}}
    arguments = {"code": "return 1", "description": "flood"}
    lines = [
        json.dumps({**line, "id": f"f{n}", "params": {**line["params"], "arguments": arguments}})
        for n in range(1000)
    ]
    peer.write("\n".join(lines).encode() + b"\n")
    results = [peer.answer(f"f{n}")["result"] for n in range(1000)]
    done = [result for result in results if not result["isError"]]
    refused = [text_of(result) for result in results if result["isError"]]
    assert len(done) >= 68
    assert all("wait for answers before asking for more" in text for text in refused)
    assert 7 == peer.run("return 7")["structuredContent"]["result"]


def test_resources_give_the_declarations_and_the_logs_of_own_runs(peer):
    run_id = peer.run("return await tools.noisy(word='logged')")["_meta"]["dev.codemode/run"]["runId"]
    listed = [each["uri"] for each in peer.ask("resources/list")["result"]["resources"]]
    assert "codemode://stubs" == listed[0]
    assert f"codemode://runs/{run_id}/events" == listed[-1]
    assert len(listed) <= 21
    stubs = peer.ask("resources/read", {"uri": listed[0]})["result"]["contents"][0]
    assert "async def noisy" in stubs["text"]
    log = peer.ask("resources/read", {"uri": listed[-1]})["result"]["contents"][0]["text"]
    kinds = [json.loads(line)["type"] for line in log.splitlines()]
    assert ["turn/start", "tool/code-dispatch", "turn/end"] == [
        kind for kind in kinds if kind in ("turn/start", "tool/code-dispatch", "turn/end")
    ]
    answer = peer.ask("resources/read", {"uri": "codemode://runs/run-0/events"})
    assert "no such resource" in answer["error"]["message"]


def test_a_client_that_disappears_takes_its_runs_along(
    fresh_peer, noisy_arguments, tmp_path, eventually, descendants
):
    with fresh_peer(*noisy_arguments) as peer:
        mark = str(tmp_path / "d")
        for code in (f"await tools.hold(mark={mark!r})", "while True: pass"):
            arguments = {"code": code, "description": "never end"}
            peer.send("tools/call", {"name": "run_code", "arguments": arguments})
        eventually((tmp_path / "d.began").exists)
        below = descendants(peer.process)
        assert below
        peer.process.stdin.close()
        assert 0 == peer.process.wait(300)
        assert (tmp_path / "d.stopped").exists()
        eventually(lambda: not any(map(processes.is_alive, below)))
