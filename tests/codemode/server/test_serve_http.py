"""`codemode serve --http`: who gets in, what is kept apart, what ends. The official SDK's client is used."""

from __future__ import annotations

import contextlib
import json
import socket

import httpx2
import mcp_types
import pytest
import trio
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

TIMEOUT_SECONDS = 300
TOKENS = ("a" * 20, "b" * 20)
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}

# The SDK's HTTP client leaves generators of responses to the garbage collector, which trio remarks upon.
pytestmark = [
    pytest.mark.needs_linux,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


def said_at_start(process):
    """Return the lines until the one that ends with the address."""
    lines = [process.stderr.readline().decode()]
    while "serving at" not in lines[-1]:
        assert lines[-1], "the server ended"
        lines.append(process.stderr.readline().decode())
    return lines


@pytest.fixture(scope="module")
def server(tmp_path_factory, launch, noisy_arguments):
    """Start a server for two tokens and give its address and process; made once for this file."""
    tokens = tmp_path_factory.mktemp("serve") / "tokens"
    tokens.write_text("# one per client\n" + "\n".join(TOKENS) + "\n")
    with launch(*noisy_arguments, "--http", "127.0.0.1:0", "--token-file", str(tokens)) as process:
        lines = said_at_start(process)
        assert not any(token in line for token in TOKENS for line in lines)
        yield lines[-1].split()[-1], process


@pytest.fixture
def url(server):
    return server[0]


@pytest.fixture
def http():
    with httpx2.Client(timeout=TIMEOUT_SECONDS) as http:
        yield http


@contextlib.asynccontextmanager
async def connected(url, token=TOKENS[0], mode="auto"):
    headers = {"Authorization": f"Bearer {token}"}
    with trio.fail_after(TIMEOUT_SECONDS):
        async with (
            httpx2.AsyncClient(headers=headers, timeout=TIMEOUT_SECONDS) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            yield client


async def run(client, code, **options):
    return await client.call_tool("run_code", {"code": code, "description": "a test"}, **options)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Basic {TOKENS[0]}"}, 401),
        ({"Authorization": f"Bearer {TOKENS[0]}x"}, 401),
        ({"Authorization": f"Bearer {TOKENS[0]}", "Host": "evil.example"}, 421),
        ({"Authorization": f"Bearer {TOKENS[0]}", "Host": "evil.example:80"}, 421),
        ({"Authorization": f"Bearer {TOKENS[0]}", "Origin": "http://evil.example"}, 403),
        ({"Authorization": f"Bearer {TOKENS[0]}", "Origin": "null"}, 403),
        ({"Authorization": f"Bearer {TOKENS[0]}"}, 200),
    ],
)
def test_only_requests_with_a_token_for_this_host_from_no_foreign_page_get_in(http, url, headers, status):
    response = http.post(url, json=INITIALIZE, headers={**ACCEPT, **headers})
    assert status == response.status_code
    assert "aaaa" not in response.text


def test_a_token_in_the_address_does_not_count(http, url):
    assert 401 == http.post(f"{url}?token={TOKENS[0]}", json=INITIALIZE, headers=ACCEPT).status_code


def test_a_body_beyond_the_bound_is_refused_before_it_is_parsed(http, url):
    headers = {**ACCEPT, "Authorization": f"Bearer {TOKENS[0]}"}
    assert 413 == http.post(url, content=b"x" * 5_000_000, headers=headers).status_code


def test_another_path_is_not_found(http, url):
    headers = {"Authorization": f"Bearer {TOKENS[0]}"}
    assert 404 == http.get(url.replace("/mcp", "/"), headers=headers).status_code


def test_a_session_answers_only_to_the_token_that_opened_it(http, url):
    mine = {**ACCEPT, "Authorization": f"Bearer {TOKENS[0]}"}
    session = http.post(url, json=INITIALIZE, headers=mine).headers["mcp-session-id"]
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    other = {**ACCEPT, "Authorization": f"Bearer {TOKENS[1]}", "mcp-session-id": session}
    assert 404 == http.post(url, json=listing, headers=other).status_code
    assert 200 == http.post(url, json=listing, headers={**mine, "mcp-session-id": session}).status_code


def test_one_client_cannot_use_up_the_sessions_of_another(http, launch, noisy_arguments, tmp_path):
    (tmp_path / "tokens").write_text("\n".join(TOKENS))
    options = ("--http", "127.0.0.1:0", "--token-file", str(tmp_path / "tokens"))
    with launch(*noisy_arguments, *options) as process:
        url = said_at_start(process)[-1].split()[-1]
        greedy, calm = ({**ACCEPT, "Authorization": f"Bearer {token}"} for token in TOKENS)
        statuses = [http.post(url, json=INITIALIZE, headers=greedy).status_code for _ in range(102)]
        assert [200] * 100 + [503] * 2 == statuses
        assert 200 == http.post(url, json=INITIALIZE, headers=calm).status_code
        # What clients do wrong is told to them, and fills nobody's log.
        process.terminate()
        assert b"" == process.stderr.read()


def test_who_sends_nothing_locks_nobody_out(url, http):
    host, port = url.split("/")[2].split(":")
    with contextlib.ExitStack() as stack:
        for _ in range(700):
            idle = stack.enter_context(socket.create_connection((host, int(port)), TIMEOUT_SECONDS))
            idle.sendall(b"POST /mcp HTTP/1.1\r\nHost: ")
        headers = {**ACCEPT, "Authorization": f"Bearer {TOKENS[0]}"}
        assert 200 == http.post(url, json=INITIALIZE, headers=headers).status_code


def test_a_client_that_reads_nothing_keeps_the_server_from_nothing(launch, noisy_arguments, http):
    with launch(*noisy_arguments, "--http", "127.0.0.1:0") as process:
        lines = said_at_start(process)
        token, url = lines[0].split()[-1], lines[-1].split()[-1]
        host, port = url.split("/")[2].split(":")
        headers = {**ACCEPT, "Authorization": f"Bearer {token}"}
        headers["mcp-session-id"] = http.post(url, json=INITIALIZE, headers=headers).headers["mcp-session-id"]
        call = {
            "jsonrpc": "2.0",
            "id": 3,
            "method": "tools/call",
            "params": {
                "name": "run_code",
                "arguments": {"code": "return 'x' * 1_000_000", "description": "x"},
            },
        }
        body = json.dumps(call).encode()
        lines = [
            "POST /mcp HTTP/1.1",
            f"Host: {host}:{port}",
            f"Content-Length: {len(body)}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect((host, int(port)))
            deaf.sendall("\r\n".join([*lines, "", ""]).encode() + body)
            # The head of the answer: the rest is more than the connection holds.
            assert deaf.recv(12).startswith(b"HTTP/1.1 200")
            process.terminate()
            assert 0 == process.wait(300)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdks_client_lists_runs_and_hears_progress(url, mode, tmp_path):
    async with connected(url, mode=mode) as client:
        assert ["run_code"] == [tool.name for tool in (await client.list_tools()).tools]
        heard = []

        async def on_progress(*progress):
            heard.append(progress)
            # The program goes on only when its progress has been heard of.
            (tmp_path / "heard").touch()

        code = (
            f"codemode.progress(1, 2, 'half')\nawait tools.wait_for(mark={str(tmp_path / 'heard')!r})\n"
            "return await tools.noisy(word='x')"
        )
        result = await run(client, code, progress_callback=on_progress)
        assert (False, "x") == (result.is_error, result.structured_content["result"])
        assert [(1, 2, "half")] == heard
        result = await run(client, "return 1 / 0")
        assert (True, 1) == (result.is_error, result.structured_content["error"]["line"])


async def test_nobody_sees_the_runs_of_another(url):
    async with (
        connected(url, mode="legacy") as mine,
        connected(url, mode="legacy") as again,
        connected(url, TOKENS[1]) as theirs,
    ):
        await run(mine, "return 'secret'")
        uris = [str(each.uri) for each in (await mine.list_resources()).resources]
        assert 2 == len(uris)
        for other in (again, theirs):
            listed = [str(each.uri) for each in (await other.list_resources()).resources]
            assert uris[1] not in listed
            with pytest.raises(MCPError, match="no such resource"):
                await other.read_resource(uris[1])
        (contents,) = (await mine.read_resource(uris[1])).contents
        assert isinstance(contents, mcp_types.TextResourceContents)
        assert "secret" in contents.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_cancelled_run_is_stopped_with_its_calls(url, mode, tmp_path):
    mark = str(tmp_path / "c")
    async with connected(url, mode=mode) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, client, f"await tools.hold(mark={mark!r})")
            await appears(mark + ".began")
            nursery.cancel_scope.cancel()
        await appears(mark + ".stopped")
        assert 1 == (await run(client, "return 1")).structured_content["result"]


def test_a_client_that_disappears_takes_its_run_along(http, url, tmp_path, eventually):
    headers = {**ACCEPT, "Authorization": f"Bearer {TOKENS[0]}"}
    headers["mcp-session-id"] = http.post(url, json=INITIALIZE, headers=headers).headers["mcp-session-id"]
    mark = str(tmp_path / "d")
    arguments = {"code": f"await tools.hold(mark={mark!r})", "description": "hold"}
    call = {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": "run_code", "arguments": arguments},
    }
    with (
        httpx2.Client(timeout=TIMEOUT_SECONDS) as leaving,
        leaving.stream("POST", url, json=call, headers=headers),
    ):
        eventually((tmp_path / "d.began").exists)
    eventually((tmp_path / "d.stopped").exists)


async def test_a_flood_of_one_token_leaves_room_for_the_other(url):
    async with connected(url) as flooding, connected(url, TOKENS[1]) as calm:
        results = []

        async def ask():
            with contextlib.suppress(MCPError):
                results.append(await run(flooding, "return 1"))

        async with trio.open_nursery() as nursery:
            for _ in range(90):
                nursery.start_soon(ask)
            assert 2 == (await run(calm, "return 2")).structured_content["result"]
        assert any(not result.is_error for result in results)


def test_it_ends_in_order_with_a_stream_open_and_frees_the_port(launch, noisy_arguments, http):
    with launch(*noisy_arguments, "--http", "127.0.0.1:0") as process:
        lines = said_at_start(process)
        token, url = lines[0].split()[-1], lines[-1].split()[-1]
        assert len(token) >= 32
        headers = {**ACCEPT, "Authorization": f"Bearer {token}"}
        response = http.post(url, json=INITIALIZE, headers=headers)
        headers["mcp-session-id"] = response.headers["mcp-session-id"]
        with http.stream("GET", url, headers=headers) as stream:
            assert 200 == stream.status_code
            process.terminate()
            assert 0 == process.wait(300)
        with pytest.raises(httpx2.ConnectError):
            http.post(url, json=INITIALIZE, headers=headers)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("short\n", "at least 16 visible ASCII"),
        ("\n# none\n", "at least one"),
        ("x" * 20 + " y\n", "no spaces"),
    ],
)
def test_a_token_file_that_protects_nothing_is_refused(codemode_serve, tmp_path, content, words):
    path = tmp_path / "tokens"
    path.write_text(content)
    status, out, err = codemode_serve("--http", "127.0.0.1:0", "--token-file", str(path))
    assert (2, b"") == (status, out)
    assert words in err.decode()


def test_an_address_that_cannot_be_bound_is_named(codemode_serve, url):
    host_and_port = url.split("/")[2]
    status, _, err = codemode_serve("--http", host_and_port)
    assert 2 == status
    assert f"--http {host_and_port}: cannot listen there" in err.decode()


async def appears(path):
    """Wait for a file that another process makes in its own time."""
    while not await trio.Path(path).exists():  # noqa: ASYNC110  # there is no event across processes
        await trio.sleep(0.02)


def test_the_answer_schema_is_the_same_over_both_transports(http, url):
    headers = {**ACCEPT, "Authorization": f"Bearer {TOKENS[0]}"}
    headers["mcp-session-id"] = http.post(url, json=INITIALIZE, headers=headers).headers["mcp-session-id"]
    response = http.post(url, json={"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, headers=headers)
    data = next(line[6:] for line in response.text.splitlines() if line.startswith("data: {"))
    (tool,) = json.loads(data)["result"]["tools"]
    assert {"logs", "result", "error", "calls"} == tool["outputSchema"]["properties"].keys()
    assert tool["outputSchema"]["additionalProperties"] is False
