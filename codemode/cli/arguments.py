"""The grammar of the command line.

Knows: names, forms and help of options. Does not know: what any of them does. Imports nothing heavy.
"""

from __future__ import annotations

import argparse
import math
import textwrap
from typing import TYPE_CHECKING, Final, NoReturn

from codemode.cli.status import CommandError

if TYPE_CHECKING:
    from collections.abc import Sequence

_HELP_COLUMNS: Final = 78
_STATUS_HELP: Final = """\
exit status:
  0  everything went well
  1  the program or the called tool failed, or is bound to fail (check)
  2  an option or input is wrong; nothing was run
  3  this host cannot give the isolation asked for
  130  stopped by Ctrl-C"""


class _Parser(argparse.ArgumentParser):
    """Raises instead of printing a usage text and leaving."""

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message} (see `{self.prog} --help`)")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line.

    Raises:
        CommandError: It is not in the grammar.
        SystemExit: A help text or the version was asked for, and has been printed.
    """
    options, unknown = _parser(arguments[0] if arguments else "").parse_known_args(arguments)
    if unknown:
        raise CommandError(f"unrecognized argument {unknown[0]!r} (see `codemode {options.command} --help`)")
    return options


def _parser(command: str) -> argparse.ArgumentParser:
    """Return the parser, of all commands or, where that is the name of one, of that one alone."""
    parser = _Parser(
        prog="codemode",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Run one Python program instead of many tool calls, in a restricted subprocess.",
        epilog=f"`codemode COMMAND --help` explains one command, with examples.\n\n{_STATUS_HELP}",
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=_Parser, dest="command"
    )
    # A command waits for its own grammar only; those of the others take longer than all of its parsing.
    for add in (_COMMANDS[command],) if command in _COMMANDS else _COMMANDS.values():
        add(commands)
    return parser


class _Version(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version and leave")

    def __call__(self, parser: argparse.ArgumentParser, *_rest: object) -> NoReturn:
        # Imported only here: it takes longer than parsing the command line.
        import importlib.metadata  # noqa: PLC0415

        print(f"codemode {importlib.metadata.version('codemode')}")
        parser.exit(0)


_Commands = argparse._SubParsersAction  # noqa: SLF001  # its only name


def _command(
    commands: _Commands[_Parser], name: str, module: str, summary: str, description: str, examples: str
) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name,
        help=summary,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=_filled(textwrap.dedent(description).strip()),
        epilog="examples:\n" + textwrap.indent(textwrap.dedent(examples).strip(), "  "),
    )
    command.set_defaults(module=module)
    return command


def _filled(text: str) -> str:
    """Return paragraphs in lines that fit a terminal of 80 columns, as argparse fits those of options."""
    return "\n\n".join(textwrap.fill(paragraph, _HELP_COLUMNS) for paragraph in text.split("\n\n"))


def _add_run(commands: _Commands[_Parser]) -> None:
    run = _command(
        commands,
        "run",
        "codemode.cli.run",
        "run a program",
        """
        Run a program: the body of an async Python function, with tools to await.

        What it prints and returns goes to standard output, why it failed to standard error.
        The tools work inside --root and nowhere else.
        """,
        """
        codemode run -c 'return 6 * 7'
        codemode run -c 'return (await tools.glob(pattern="**/*.md"))["paths"]'
        codemode run --root ~/project --events run.jsonl report.py
        codemode run --tools my_tools.py:registry --json - < report.py
        """,
    )
    _add_program(run)
    run.add_argument(
        "--description", metavar="TEXT", help="what the program is for, in a few words; recorded with it"
    )
    _add_tool_options(run)
    run.add_argument(
        "--events",
        metavar="FILE",
        help="append the event log of the run to FILE, created readable by you only; it must not be a link",
    )
    run.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    _add_limits(run, output_bytes=67_108_864)


def _add_limits(command: argparse.ArgumentParser, *, output_bytes: int) -> None:
    limits = command.add_argument_group("limits")
    limits.add_argument(
        "--wall-seconds", type=_seconds, metavar="S", help="elapsed time the run may take (default 600)"
    )
    limits.add_argument(
        "--compute-seconds",
        type=_seconds,
        metavar="S",
        help="processor time the program itself may use; waiting for tools is free (default 60)",
    )
    limits.add_argument(
        "--memory-mb", type=_whole, metavar="N", help="memory the program may use, in MiB (default 512)"
    )
    limits.add_argument(
        "--max-output-bytes",
        type=_whole,
        metavar="N",
        help=f"JSON bytes of the printed lines plus the result (default {output_bytes})",
    )
    command.add_argument(
        "--isolation",
        choices=["require", "best-effort"],
        help="what to do where the kernel lacks a mandatory wall: refuse (default), or use what there is",
    )


def _add_check(commands: _Commands[_Parser]) -> None:
    check = _command(
        commands,
        "check",
        "codemode.cli.check",
        "say what in a program is bound to fail",
        """
        Judge a program without running it: what the language refuses, and what in it is bound to fail, such
        as a tool or a module that does not exist. Where there is doubt it says nothing, because the program
        may be right.
        """,
        """
        codemode check report.py
        codemode check -c 'await tools.raed(file_path="a")'
        """,
    )
    _add_program(check)
    _add_tool_options(check)
    check.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def _add_call(commands: _Commands[_Parser]) -> None:
    call = _command(
        commands,
        "call",
        "codemode.cli.call",
        "call one tool",
        "Call one tool without a program, through the same checks, and print what a model would be shown.",
        """
        codemode call read '{"file_path": "README.md", "limit": 5}'
        codemode call --json glob '{"pattern": "*.toml"}'
        """,
    )
    call.add_argument("name", metavar="NAME", help="the tool")
    call.add_argument(
        "arguments", metavar="JSON", help="its arguments, a JSON object; - reads standard input"
    )
    _add_tool_options(call, allow=False)
    call.add_argument("--events", metavar="FILE", help="append the event log of the call to FILE")
    call.add_argument("--json", action="store_true", help="print one JSON object with the canonical value")


def _add_batch(commands: _Commands[_Parser]) -> None:
    batch = _command(
        commands,
        "batch",
        "codemode.cli.batch",
        "make many calls without a program",
        """
        Make the calls of a file, a line of JSON each: {"tool": NAME, "arguments": {...}, "id": ...}, where
        the id is your own and may be left out. Calls that may overlap do; each of the others runs alone.

        Every line is answered by a line of JSON, in the same order and as soon as it is known: what was
        called, how it ended, and its value. A line that is no call is reported with its number and stops
        nothing. The exit status is 1 when any line did not succeed.

        With --output, a batch that was interrupted, even killed, goes on with --resume: no call that has run
        is made again. One that was running when the command was killed is reported as of unknown outcome.
        What has run is noted in FILE.journal, which is removed when the output is complete.
        """,
        """
        codemode batch calls.jsonl > results.jsonl
        codemode batch calls.jsonl --output results.jsonl
        codemode batch calls.jsonl --output results.jsonl --resume
        generate-calls | codemode batch --tools my_tools.py:registry -
        """,
    )
    batch.add_argument("file", metavar="FILE", help="the calls, JSON Lines; - reads standard input")
    batch.add_argument(
        "--output",
        metavar="FILE",
        help="write to FILE instead of standard output, so that the batch can go on after an interruption;"
        " created readable by you only",
    )
    batch.add_argument(
        "--resume",
        action="store_true",
        help="go on with the output file where it ends; begin it if there is none",
    )
    batch.add_argument(
        "--max-parallel", type=_whole, metavar="N", help="calls that may run at the same time (default 10)"
    )
    _add_tool_options(batch)
    batch.add_argument("--events", metavar="FILE", help="append the event log of the calls to FILE")


def _add_tools(commands: _Commands[_Parser]) -> None:
    tools = _command(
        commands,
        "tools",
        "codemode.cli.tools",
        "list the tools",
        """
        List the tools a program can call: whether each is on, and whether its calls may overlap (parallel)
        or each waits until no other call runs (exclusive).
        """,
        """
        codemode tools
        codemode tools --all --allow read --allow grep
        """,
    )
    _add_tool_options(tools)
    tools.add_argument("--all", action="store_true", help="also what a program cannot call")


def _add_stubs(commands: _Commands[_Parser]) -> None:
    stubs = _command(
        commands,
        "stubs",
        "codemode.cli.stubs",
        "print what a model is told about the tools",
        "Print the Python declarations of the tools, as they go into a model's prompt.",
        """
        codemode stubs --tools my_tools.py:registry
        """,
    )
    _add_tool_options(stubs)


def _add_events(commands: _Commands[_Parser]) -> None:
    events = _command(
        commands,
        "events",
        "codemode.cli.events",
        "show an event log as a timeline",
        """
        Show an event log as a timeline. Damage does not stop it: what is missing is named at the end.
        """,
        """
        codemode run --events run.jsonl report.py; codemode events run.jsonl
        codemode events run.jsonl --html run.html
        """,
    )
    events.add_argument("file", metavar="FILE", help="the log, as `run --events` writes it")
    events.add_argument(
        "--html",
        metavar="OUT",
        help="write one HTML page that needs nothing beside itself, readable by you only; - prints it",
    )


def _add_doctor(commands: _Commands[_Parser]) -> None:
    doctor = _command(
        commands,
        "doctor",
        "codemode.cli.doctor",
        "show what protects programs on this machine",
        """
        Show which walls this machine can put around a program, and whether programs start here at all.
        Its exit status is 3 where `--isolation require` would refuse.
        """,
        """
        codemode doctor
        codemode doctor --json
        """,
    )
    doctor.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def _add_bench(commands: _Commands[_Parser]) -> None:
    bench = _command(
        commands,
        "bench",
        "codemode.cli.bench",
        "measure what calls cost on this machine",
        """
        Measure what a call of a tool costs: alone, and from a program sequentially, gathered and batched,
        beside what no design can beat, in interleaved rounds. The ratios can be compared with those of
        another machine, the times cannot. What else runs here makes them worse, so let it be little.

        A tool named with --tool is really called, with the same arguments every time: four times CALLS in
        every round. Without one, a tool that adds two numbers is called, beside the others there are.
        """,
        """
        codemode bench
        codemode bench --tool read --arguments '{"file_path": "README.md"}'
        codemode bench --rounds 30 --json
        """,
    )
    bench.add_argument("--tool", metavar="NAME", help="the tool to call")
    bench.add_argument(
        "--arguments",
        metavar="JSON",
        help="what it is called with, a JSON object; - reads standard input (default: nothing)",
    )
    bench.add_argument("--rounds", type=_whole, default=10, metavar="N", help="rounds (default 10)")
    bench.add_argument(
        "--calls",
        type=_up_to_thousand,
        default=500,
        metavar="N",
        help="calls of one program, at most 1000 (default 500)",
    )
    _add_tool_options(bench, allow=False)
    bench.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def _add_init(commands: _Commands[_Parser]) -> None:
    init = _command(
        commands,
        "init",
        "codemode.cli.init",
        "write a small beginning: tools of your own and a program",
        """
        Write two commented files to begin with, tools of your own and a program that calls them, and print
        the command that runs them. Nothing that is there is written over.
        """,
        """
        codemode init
        codemode init first-steps
        """,
    )
    init.add_argument(
        "directory",
        nargs="?",
        default=".",
        metavar="DIR",
        help="where to write them; made if it is not there (default: the current directory)",
    )


def _add_program(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", nargs="?", metavar="FILE", help="the program; - reads standard input")
    command.add_argument("-c", dest="code", metavar="CODE", help="the program itself")


def _add_serve(commands: _Commands[_Parser]) -> None:
    serve = _command(
        commands,
        "serve",
        "codemode.cli.serve",
        "offer run_code to MCP clients",
        """
        Be an MCP server: clients get a tool `run_code`, and with --present both the tools one by one as well.
        Speaks over standard input and output, or over streamable HTTP with --http. An HTTP client must send a
        bearer token: one of --token-file, else that of the environment variable CODEMODE_TOKEN, else one that
        is made and printed to standard error. A client that leaves takes its programs along.
        """,
        """
        codemode serve --root ~/project
        codemode serve --mcp ~/servers.json --tools none
        codemode serve --http 127.0.0.1:8000 --token-file tokens.txt
        """,
    )
    serve.add_argument(
        "--http",
        type=_address,
        metavar="HOST:PORT",
        help="serve over streamable HTTP at http://HOST:PORT/mcp; port 0 takes a free one",
    )
    serve.add_argument(
        "--token-file",
        metavar="FILE",
        help="bearer tokens, one per line; the sessions of one token are closed to the others",
    )
    serve.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME[:PORT]",
        help="answer to this Host header too, as a proxy in front may send it. May be repeated",
    )
    serve.add_argument(
        "--present",
        choices=["code", "both"],
        help="offer only run_code, or the tools one by one as well (default: code)",
    )
    _add_tool_options(serve)
    serve.add_argument("--events", metavar="FILE", help="append the event log of everything to FILE")
    _add_limits(serve, output_bytes=1_048_576)


def _add_tool_options(command: argparse.ArgumentParser, *, allow: bool = True) -> None:
    group = command.add_argument_group("tools")
    group.add_argument(
        "--tools",
        action="append",
        default=[],
        metavar="SPEC",
        help="add the tools of a ToolRegistry, or of a function that returns one: module:attribute or "
        "path/to/file.py:attribute; `none` leaves out the built-in tools. May be repeated",
    )
    group.add_argument(
        "--mcp",
        action="append",
        default=[],
        metavar="FILE",
        help="add the tools of the MCP servers in FILE, in the mcpServers form of desktop clients; they run"
        " as you, outside of --root. May be repeated",
    )
    if allow:
        group.add_argument(
            "--allow",
            action="append",
            default=[],
            metavar="NAME",
            help="offer this tool, and no other that is not allowed too. May be repeated",
        )
    group.add_argument(
        "--root",
        default=".",
        metavar="DIR",
        help="directory the built-in file tools work in and cannot leave (default: the current one)",
    )


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not colon and text.isdecimal():
        port = text
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 65_535):
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, for example 127.0.0.1:8000")
    return host, int(port)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def _whole(text: str) -> int:
    # int() alone also takes "1_000" and " 7 ", which are more likely slips than meant.
    if not (text.isascii() and text.isdecimal() and 1 <= len(text) <= 15 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _up_to_thousand(text: str) -> int:
    value = _whole(text)
    if value > 1000:
        # More cannot be gathered at once; see `max_pending_calls`.
        raise argparse.ArgumentTypeError(f"{text} is more than 1000")
    return value


_COMMANDS: Final = {
    "run": _add_run,
    "check": _add_check,
    "call": _add_call,
    "batch": _add_batch,
    "tools": _add_tools,
    "stubs": _add_stubs,
    "events": _add_events,
    "doctor": _add_doctor,
    "bench": _add_bench,
    "serve": _add_serve,
    "init": _add_init,
}
"""What adds the grammar of each command, in the order of the help text."""
