"""The `mcpServers` file: what is read, and how every slip is named."""

from __future__ import annotations

import json

import pytest

from tool_bindings.mcp import (
    HttpServer,
    McpConfigError,
    McpServerConfig,
    Reconnect,
    StdioServer,
    load_mcp_config,
    parse_mcp_config,
)


def parse(entry, environ=None, name="s"):
    return parse_mcp_config({"mcpServers": {name: entry}}, {} if environ is None else environ)


def test_a_desktop_configuration_gives_servers_with_the_defaults():
    (config,) = parse({"command": "srv", "args": ["-x"], "env": {"A": "1"}, "cwd": "/tmp"})
    assert McpServerConfig("s", StdioServer("srv", ("-x",), {"A": "1"}, "/tmp")) == config
    assert (60.0, 60.0, False, False) == (
        config.tool_call_timeout_seconds,
        config.startup_timeout_seconds,
        config.fail_on_startup_error,
        config.concurrency_safe,
    )
    assert Reconnect(True, 0.5, 30.0, 10) == config.reconnect


@pytest.mark.parametrize("kind", [None, "http", "streamable-http", "streamableHttp"])
def test_a_url_is_a_server_over_http_under_all_names_clients_use(kind):
    entry = {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer x"}}
    (config,) = parse(entry if kind is None else {**entry, "type": kind})
    assert HttpServer("https://example.org/mcp", {"Authorization": "Bearer x"}) == config.transport
    assert "Bearer" not in repr(config)


def test_settings_of_our_own_are_under_codemode():
    own = {
        "toolCallTimeoutMs": 1500,
        "startupTimeoutMs": 2500,
        "failOnStartupError": True,
        "concurrencySafe": ["a", "b"],
        "reconnect": {"enabled": False, "initialDelayMs": 1, "maxDelayMs": 2, "maxAttempts": 3},
    }
    (config,) = parse({"command": "srv", "codemode": own})
    assert (1.5, 2.5, True, {"a", "b"}, Reconnect(False, 0.001, 0.002, 3)) == (
        config.tool_call_timeout_seconds,
        config.startup_timeout_seconds,
        config.fail_on_startup_error,
        config.concurrency_safe,
        config.reconnect,
    )


def test_keys_of_other_clients_are_ignored_and_disabled_servers_left_out():
    assert [] == parse({"command": "srv", "disabled": True, "autoApprove": ["x"]})
    assert 1 == len(parse({"command": "srv", "autoApprove": ["x"], "icon": "y", "timeout": 5}))


def test_environment_variables_stand_in_every_string():
    entry = {"command": "${BIN}/srv", "args": ["${MISSING:-fallback}"], "env": {"KEY": "${SECRET}"}}
    (config,) = parse(entry, {"BIN": "/opt", "SECRET": "s3cret"})
    assert StdioServer("/opt/srv", ("fallback",), {"KEY": "s3cret"}) == config.transport


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "either `command`"),
        ([], "must be an object"),
        ({"command": "a", "url": "http://x"}, "either `command`"),
        ({"type": "http", "command": "a"}, "either `command`"),
        ({"type": "sse", "url": "http://x"}, "streamable HTTP url"),
        ({"type": "carrier-pigeon", "command": "a"}, "stdio or http"),
        ({"command": ""}, "is empty"),
        ({"command": "a\0b"}, "zero character"),
        ({"command": "a", "args": "x"}, "`args` must be an array"),
        ({"command": "a", "args": [1]}, "`args[0]` must be a string"),
        ({"command": "a", "env": {"K": 1}}, "`env.K` must be a string"),
        ({"command": "a", "arg": []}, "did you mean `args`"),
        ({"command": "${NOPE}"}, "environment variable NOPE, which is not set"),
        ({"url": "ftp://x"}, "http or https"),
        ({"command": "a", "disabled": "yes"}, "true or false"),
        ({"command": "a", "codemode": []}, "`codemode` must be an object"),
        ({"command": "a", "codemode": {"x": 1}}, "`codemode.x` is not known"),
        (
            {"command": "a", "codemode": {"reconnect": {"delay": 1}}},
            "`codemode.reconnect.delay` is not known",
        ),
        ({"command": "a", "codemode": {"reconnect": {"maxAttempts": 0}}}, "at least 1"),
        ({"command": "a", "codemode": {"reconnect": {"initialDelayMs": 9, "maxDelayMs": 8}}}, "not be above"),
        ({"command": "a", "codemode": {"toolCallTimeoutMs": 2**31}}, "at most 2147483647"),
        ({"command": "a", "codemode": {"toolCallTimeoutMs": 0}}, "above 0"),
        ({"command": "a", "codemode": {"concurrencySafe": "x"}}, "true, false or an array"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_server_and_the_key(entry, words):
    with pytest.raises(McpConfigError) as caught:
        parse(entry)
    assert str(caught.value).startswith("MCP server 's': ")
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["", "a b", "x" * 33, "ä", "a/b"])
def test_a_server_name_that_would_not_survive_in_a_tool_name_is_refused(name):
    with pytest.raises(McpConfigError, match="1 to 32 characters"):
        parse({"command": "a"}, name=name)


@pytest.mark.parametrize("document", [None, [], {}, {"mcpServers": []}, {"servers": {}}])
def test_a_document_of_another_form_is_told_the_right_one(document):
    with pytest.raises(McpConfigError, match="mcpServers"):
        parse_mcp_config(document)


def test_a_file_is_read_with_a_byte_order_mark_too(tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"s": {"command": "a"}}}), encoding="utf-8-sig")
    assert ["s"] == [config.name for config in load_mcp_config(path)]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff", "not UTF-8"),
        (b"{", "not valid JSON"),
        (b" " * 1_048_577, "more than 1048576 bytes"),
        (b'{"mcpServers": {"s": {"command": "a"}, "s": {"command": "b"}}}', "the key 's' stands twice"),
    ],
)
def test_a_file_that_is_no_configuration_says_why(tmp_path, data, words):
    path = tmp_path / "mcp.json"
    path.write_bytes(data)
    with pytest.raises(McpConfigError, match=words):
        load_mcp_config(path)
    with pytest.raises(McpConfigError, match="cannot read"):
        load_mcp_config(tmp_path / "missing.json")
