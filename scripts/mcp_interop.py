"""Show that MCP works both ways with software that others wrote, and print what was run, with versions.

usage: python scripts/mcp_interop.py [--into DIR]

Installs public MCP servers (PyPI and npm) and the TypeScript SDK into DIR, by default a new directory that
is removed again; runs one program that calls two or more tools of each server through `codemode run --mcp`;
then has the TypeScript SDK's client list and call `run_code` of `codemode serve`, over standard streams and
over HTTP. Needs the network, npm and git. Exit status 0 when everything agreed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PYPI = ["mcp-server-time", "mcp-server-git"]
NPM = [
    "@modelcontextprotocol/server-filesystem",
    "@modelcontextprotocol/server-memory",
    "@modelcontextprotocol/server-everything",
]
NPM_CLIENT = "@modelcontextprotocol/sdk"
TOKEN = "interop-test-token-0123456789"  # noqa: S105  # of a server that lives for a second

PROGRAM = """
def structured(result):
    return result.get("structuredContent") or result["content"][0]["text"]

async def text(call):
    return "\\n".join(block["text"] for block in (await call)["content"] if block["type"] == "text")

now = structured(await tools.mcp__time__get_current_time(timezone="UTC"))
tokyo = structured(await tools.mcp__time__convert_time(
    source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"))

status = await text(tools.mcp__git__git_status(repo_path=REPOSITORY))
log = await text(tools.mcp__git__git_log(repo_path=REPOSITORY, max_count=1))

await tools.mcp__fs__write_file(path=FOLDER + "/note.txt", content="first line\\nsecond line\\n")
note = await text(tools.mcp__fs__read_text_file(path=FOLDER + "/note.txt", head=1))
listing = await text(tools.fs.list_directory(path=FOLDER))

await tools.mcp__memory__create_entities(entities=[
    {"name": "repository", "entityType": "place", "observations": [status.splitlines()[0], note]}])
graph = structured(await tools["memory/read_graph"]())

total = await text(tools.everything.get_sum(a=len(listing.splitlines()), b=len(graph["entities"])))
echo = await text(tools.mcp__everything__echo(message=note))

return {
    "time": isinstance(now, (dict, str)) and "Tokyo" in str(tokyo),
    "git": "On branch" in status and "first commit" in log,
    "fs": note.strip() == "first line" and "note.txt" in listing,
    "memory": note in graph["entities"][0]["observations"],
    "everything": any(figure.isdigit() for figure in total) and "first line" in echo,
}
"""

CLIENT = """
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [kind, target, ...rest] = process.argv.slice(2);
const transport = kind === "stdio"
  ? new StdioClientTransport({ command: target, args: rest })
  : new StreamableHTTPClientTransport(new URL(target),
      { requestInit: { headers: { Authorization: `Bearer ${rest[0]}` } } });
const client = new Client({ name: "interop", version: "0" });
await client.connect(transport);
const { tools } = await client.listTools();
const seen = [];
const result = await client.callTool(
  { name: "run_code", arguments: {
    // The client drops a report that it reads together with the answer, hence the pause.
    code: "print('from node')\\ncodemode.progress(1, 2)\\nimport asyncio\\nawait asyncio.sleep(1)\\n" +
      "return {'sum': 40 + 2, 'none': None}",
    description: "add" } },
  undefined, { onprogress: (progress) => seen.push(progress.progress) });
const failed = await client.callTool(
  { name: "run_code", arguments: { code: "return 1 / 0", description: "fail" } });
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), result: result.structuredContent,
  progress: seen, failed: failed.isError, line: failed.structuredContent.error.line }));
await client.close();
"""
EXPECTED = {
    "tools": ["run_code"],
    "result": {"logs": ["from node"], "result": {"sum": 42, "none": None}, "calls": []},
    "progress": [1],
    "failed": True,
    "line": 1,
}


def main() -> int:
    """Install, run, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", metavar="DIR", help="keep what is installed there, and use it again")
    options = parser.parse_args()
    if options.into is not None:
        return check(Path(options.into).absolute())
    with tempfile.TemporaryDirectory(prefix="mcp-interop-") as name:
        return check(Path(name))


def check(place: Path) -> int:
    """Do everything inside one directory."""
    place.mkdir(parents=True, exist_ok=True)
    install(place)
    agreed = [check_servers(place), check_node_client(place)]
    print("\nwhat was run:")
    for line in versions(place):
        print(f"  {line}")
    return 0 if all(agreed) else 1


def install(place: Path) -> None:
    """Install what is not there yet."""
    complete = place / "complete"
    if complete.exists():
        return
    venv.create(place / "py", with_pip=True)
    run([f"{place}/py/bin/pip", "install", "--quiet", "--disable-pip-version-check", *PYPI])
    (place / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
    run(["npm", "install", "--silent", "--no-audit", "--no-fund", *NPM, NPM_CLIENT], cwd=place)
    complete.touch()


def check_servers(place: Path) -> bool:
    """Call the servers from one program."""
    with tempfile.TemporaryDirectory(dir=place) as name:
        folder, repository = Path(name) / "folder", Path(name) / "repository"
        folder.mkdir()
        git = ["git", "-C", str(repository), "-c", "user.name=x", "-c", "user.email=x@example.invalid"]
        run(["git", "init", "--quiet", str(repository)])
        run([*git, "commit", "--quiet", "--allow-empty", "-m", "first commit"])
        node_bin, python_bin = place / "node_modules/.bin", place / "py/bin"
        servers = {
            "time": {"command": f"{python_bin}/mcp-server-time", "args": ["--local-timezone", "UTC"]},
            "git": {"command": f"{python_bin}/mcp-server-git", "args": ["--repository", str(repository)]},
            "fs": {"command": f"{node_bin}/mcp-server-filesystem", "args": [str(folder)]},
            "memory": {
                "command": f"{node_bin}/mcp-server-memory",
                "env": {"MEMORY_FILE_PATH": str(Path(name) / "memory.json")},
            },
            "everything": {"command": f"{node_bin}/mcp-server-everything"},
        }
        config = Path(name) / "servers.json"
        config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
        program = f"REPOSITORY = {str(repository)!r}\nFOLDER = {str(folder)!r}\n{PROGRAM}"
        command = [
            sys.executable,
            "-m",
            "codemode",
            "run",
            "--tools",
            "none",
            "--mcp",
            str(config),
            "--json",
            "-",
        ]
        done = subprocess.run(  # noqa: S603  # our own words
            command, input=program, capture_output=True, text=True, check=False, cwd=PROJECT, timeout=180
        )
    outcome = json.loads(done.stdout)
    if not outcome["ok"]:
        print(f"the program failed: {outcome['error']['message']}\n{done.stderr}")
        return False
    counts: dict[str, int] = {}
    for call in outcome["calls"]:
        server = call["tool"].split("__")[1]
        counts[server] = counts.get(server, 0) + (call["status"] == "succeeded")
    for server, good in outcome["result"].items():
        print(
            f"codemode run --mcp, {server:<11} {counts[server]} calls: {'as expected' if good else 'WRONG'}"
        )
    return all(outcome["result"].values()) and min(counts.values()) >= 2


def check_node_client(place: Path) -> bool:
    """Have the TypeScript SDK's client list and call run_code, over both transports."""
    client = place / "client.mjs"
    client.write_text(CLIENT, encoding="utf-8")
    serve = [sys.executable, "-m", "codemode", "serve", "--tools", "none"]
    good = compare("standard streams", ["node", str(client), "stdio", *serve])
    with subprocess.Popen(  # noqa: S603  # our own words
        [*serve, "--http", "127.0.0.1:0"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "CODEMODE_TOKEN": TOKEN},
        cwd=PROJECT,
    ) as server:
        try:
            assert server.stderr is not None
            url = server.stderr.readline().split()[-1]
            return compare("HTTP", ["node", str(client), "http", url, TOKEN]) and good
        finally:
            server.terminate()


def compare(transport: str, command: list[str]) -> bool:
    """Run the client and compare what it saw."""
    done = subprocess.run(  # noqa: S603  # our own words
        command, capture_output=True, text=True, check=False, cwd=PROJECT, timeout=120
    )
    try:
        seen = json.loads(done.stdout)
    except ValueError:
        seen = done.stderr
    good = bool(seen == EXPECTED)
    print(
        f"codemode serve, TypeScript client over {transport}: {'as expected' if good else f'WRONG: {seen}'}"
    )
    return good


def versions(place: Path) -> list[str]:
    """Return name and version of everything that took part."""
    listed = output([f"{place}/py/bin/pip", "list", "--format", "json", "--disable-pip-version-check"])
    python = {each["name"]: each["version"] for each in json.loads(listed)}
    found = [f"{name} {python[name]} (PyPI, with mcp {python['mcp']})" for name in PYPI]
    for name in (*NPM, NPM_CLIENT):
        package = json.loads((place / "node_modules" / name / "package.json").read_text(encoding="utf-8"))
        found.append(f"{name} {package['version']} (npm)")
    ours = json.loads(output([sys.executable, "-m", "pip", "list", "--format", "json"]))
    found += [
        f"{each['name']} {each['version']} (ours)"
        for each in ours
        if re.fullmatch("codemode|mcp|hypercorn|trio", each["name"], re.IGNORECASE)
    ]
    return [*found, f"node {output(['node', '--version']).strip()}", f"Python {sys.version.split()[0]}"]


def run(command: list[str], *, cwd: Path | None = None) -> None:
    """Run one step; its own messages are the explanation when it fails."""
    subprocess.run(command, check=True, cwd=cwd)  # noqa: S603  # our own words


def output(command: list[str]) -> str:
    """Return what a command prints."""
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603  # our own words
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
