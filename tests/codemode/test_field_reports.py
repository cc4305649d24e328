"""What users of comparable systems reported as bugs and surprises, as cases for this one.

Each case cites its report (F...). `tests/data/field-reports.md` says where the others are tested, and which
do not fit and why.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import json
import uuid

import corpus
import processes
import psutil
import pytest
import slips
import trio

from codemode import ABSENT, Settings, open_service
from tool_bindings import Deny, Output, ToolDefinition, ToolRegistry, render_stubs

pytestmark = pytest.mark.needs_linux


def result(expected):
    return lambda outcome: outcome.ok and corpus.same_json(expected, outcome.result)


def failure(*parts, kind=None, line=None, calls=None):
    def holds(outcome):
        text = outcome.content[0]["text"]
        return (
            not outcome.ok
            and all(part in text for part in parts)
            and kind in (None, outcome.failure.kind)
            and line in (None, outcome.failure.line)
            and calls in (None, [call.tool for call in outcome.calls])
        )

    return holds


def hint(*parts):
    return lambda outcome: outcome.ok and all(part in (outcome.hint or "") for part in parts)


CASES = {
    "F001": (
        (
            "import asyncio\nasync def guard(n):\n    try:\n"
            "        return await tools.fail(message=f'no {n}')\n    except Exception as x:\n"
            "        return 'caught'\nawait asyncio.gather(guard(1), tools.add(a=1,b=2))"
        ),
        result(["caught", 3]),
    ),
    "F003": (
        (
            "total=0\nfor m in ('x','y'):\n    try:\n        await tools.fail(message=m)\n"
            "    except Exception:\n        total+=1\n    finally:\n        total+=10\ntotal"
        ),
        result(22),
    ),
    "F003 unknown name": (
        "try:\n    await tools['nope']()\nexcept Exception:\n    n = 1\nn",
        result(1),
    ),
    "F004": (
        "v = await tools.search(query='cats', page=1, kind='repo')\n{'got': v}",
        failure('"kind"', line=1, calls=[]),
    ),
    "F006": ("print(tools.add(a=1,b=2))", failure("tools.add", "await", line=1, calls=[])),
    "F012": (
        "import asyncio\nasync def main():\n    return await tools.add(a=20,b=22)\nasyncio.run(main())",
        result(42),
    ),
    "F013": ("answer = await tools.add(a=40,b=2)", result(42)),
    "F014": ("type({})", hint("not JSON", "return")),
    "F020": (
        (
            "class P:\n    def __init__(self,x): self.x=x\n    def __eq__(self,o): return self.x==o.x\n"
            "class Q(P):\n    @property\n    def y(self): return self.x*2\n[Q(3).y, P(1)==P(1)]"
        ),
        result([6, True]),
    ),
    "F021": (
        "d={'k':1,'j':2}\ndel d['k']\nmatch d:\n    case {'j': v}: r=v\ndef g():\n    yield r\nlist(g())",
        result([2]),
    ),
    "F022": (
        (
            "from datetime import datetime, timezone, timedelta\nimport time\n"
            "[(datetime.now(timezone.utc)-timedelta(hours=24)).year > 2000, time.time()>0]"
        ),
        result([True, True]),
    ),
    "F024": (
        "def triple(f):\n    return lambda *a: 3*f(*a)\n@triple\ndef base(): return 5\nbase()",
        result(15),
    ),
    "F026": (
        (
            "from dataclasses import dataclass, field, asdict\n@dataclass\nclass R:\n    name: str\n"
            "    tags: list[str] = field(default_factory=list)\nasdict(R('a',['t']))"
        ),
        result({"name": "a", "tags": ["t"]}),
    ),
    "F026 package": ("import pydantic", failure("pydantic", "Importable modules: ")),
    "F027": ("t=0\nfor i in range(4): t += i\nxs=[]\nxs += [t]\nxs", result([6])),
    "F029": (
        "for _ in range(2):\n    _tmp = await tools.add(a=1,b=1)\n_, last = (0, _tmp)\nlast",
        result(2),
    ),
    "F031": (
        "with open('notes.txt') as f:\n    t = f.read()\nt",
        failure("open() is not available", "await tools.read("),
    ),
    "F034": (
        "def pick(xs, i):\n    return xs[i]\n\nvals=[1,2]\npick(vals, 5)",
        failure("IndexError", "line 5, in <module>: pick(vals, 5)", "line 2, in pick: return xs[i]", line=2),
    ),
    "F036": ("await tools.add(a='one', b=2)", failure("tools.add", '"a"', "an integer", "string 'one'")),
    "F036 at run time": (
        "x = 'one'\nawait tools.add(a=x, b=2)",
        failure('"a" must be an integer', '(got "one")', "add(*, a: int, b: int)"),
    ),
    "F037": (
        "await tools.search(app='x', actions=[])",
        failure("search(*, query: str, page: int = ...)", calls=[]),
    ),
    "F037 look-up": (
        "text = await codemode.describe('search')\n'query: str' in text",
        result(True),
    ),
    "F048": ("await exotic_nam(x=1)", failure('did you mean `await tools["exotic-name"](...)`?')),
    "F064": (
        "[await tools.echo(value=v) for v in ('\"{\\\\\"a\\\\\": 1}\"', '007', '1e5')]",
        result(['"{\\"a\\": 1}"', "007", "1e5"]),
    ),
    "F071": (
        "import sys\nprint('x'*300000)\nsys.stderr.write('e'*300000)\n1",
        lambda outcome: outcome.result == 1 and [300000, 300000] == [len(line) for line in outcome.logs],
    ),
    "F074": ("return {'raw': b'\\xff\\x00\\x10', 'n': 1}", failure('"result.raw" is a bytes', "base64")),
    "F076": ("await view_image(path='a.png')", failure("NameError", "tools.image")),
    "F096": (
        (
            "d={i:{'v':[j for j in range(50)]} for i in range(3000)}\nfor _ in range(30):\n"
            "    t={k:sum(x['v']) for k,x in d.items()}\nsum(t.values())"
        ),
        result(3675000),
    ),
    "F097": ("(" * 20000 + "1" + ")" * 20000, failure("SyntaxError", kind="policy")),
    "F135": (
        "n='a\\ud800b'\nprint(n)\n{n: await tools.echo(value=n)}",
        lambda outcome: {"a\ud800b": "a\ud800b"} == outcome.result and ["a\ud800b"] == outcome.logs,
    ),
    "F137": ("return {'mean': float('nan')}", failure('"result.mean" is NaN', kind="invalid-output")),
    "F137 implicit": ("vals=[]\n{'mean': float('nan'), 'hi': float('inf')}", hint('"result.mean" is NaN')),
    "F139": (
        "[2**53+1, 2**200, -0.0, await tools.echo(value=2**80)]",
        result([2**53 + 1, 2**200, -0.0, 2**80]),
    ),
    "F139 infinite": ("return [1, 1e400]", failure('"result[1]" is infinite')),
    "F140": (
        "import collections as k\n{'t':(1,2),'o':k.OrderedDict(a=1),'n':k.namedtuple('N','a')(1)}",
        result({"t": [1, 2], "o": {"a": 1}, "n": [1]}),
    ),
    "F140 decimal": (
        "import decimal as c\nreturn {'c':c.Decimal('0.10')}",
        failure('"result.c" is a Decimal', "str(...) to keep every digit"),
    ),
    "F140 argument": (
        "import decimal as c\nreturn await tools.echo(value={'c':c.Decimal('0.10')})",
        failure('"arguments.value.c" is a Decimal', "str(...)"),
    ),
    "F152": ("len(rows)", failure("NameError", "earlier runs")),
}
"""Programs (tool names spelled our way) and what must come of each."""


async def test_each_program_ends_as_its_report_asks():
    faults = {}
    async with open_service(slips.slips_registry()) as service, trio.open_nursery() as nursery:
        at_once = trio.CapacityLimiter(4)

        async def run(name, source, holds):
            async with at_once:
                outcome = await service.run_code(source)
            if not holds(outcome):
                faults[name] = (outcome.result, outcome.hint, outcome.content)

        for name, (source, holds) in CASES.items():
            nursery.start_soon(run, name, source, holds)
    assert {} == faults


async def test_f008_gather_leaves_nothing_running_after_its_first_failure():
    source = (
        "import asyncio\nasync def late():\n    await tools.slow(ms=60000)\n"
        "    await tools.echo(value='ghost')\nawait asyncio.gather(late(), tools.fail(message='now'))"
    )
    events = []
    async with open_service(corpus.fixture_registry(), on_event=events.append) as service:
        outcome = await service.run_code(source)
    assert {"slow": "failed", "fail": "failed"} == {call.tool: call.status for call in outcome.calls}
    assert "turn/end" == events[-1]["type"]


async def test_f039_a_killed_worker_is_told_from_one_that_never_ran():
    registry = corpus.fixture_registry()

    @registry.tool
    async def kill() -> None:
        """Kill the program's own process."""
        for worker in processes.workers():
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.kill()

    async with open_service(registry, settings=Settings(parked_workers=1)) as service:
        never = await service.run_code("return (")
        died = await service.run_code("await tools.echo(value='w')\nawait tools.kill()\nreturn 1")
    assert ("policy", []) == (never.failure.kind, never.calls)
    assert "worker-exit" == died.failure.kind
    assert ("echo", "succeeded", True) == (
        died.calls[0].tool,
        died.calls[0].status,
        died.calls[0].executed,
    )


@pytest.mark.parametrize(
    "name",
    ["exotic-name", "ns.get", "2fa", "x y", "搜索", "検索", "!!!", "_", "print", "len", "class", "json"],
)
async def test_f041_f043_f045_every_name_is_callable_and_replaces_nothing(name):
    registry = ToolRegistry()
    calls = []

    async def body(arguments, context):
        calls.append(arguments)
        return name

    for each in (name, "other"):
        registry.register(ToolDefinition(each, "", {"type": "object"}, Output({"type": "string"}), body))
    stubs = render_stubs(registry.definitions())
    reach = f"tools[{json.dumps(name)}]" if f"tools[{json.dumps(name)}](" in stubs else f"tools.{name}"
    async with open_service(registry) as service:
        outcome = await service.run_code(f"print(len('abc'))\nreturn await {reach}()")
        by_item = await service.run_code(f"return await tools[{json.dumps(name)}]()")
    assert (name, ["3"]) == (outcome.result, outcome.logs)
    assert name == by_item.result


async def test_f046_parameters_that_are_no_identifiers_arrive_under_their_names():
    registry = ToolRegistry()

    async def body(arguments, context):
        return sorted(arguments)

    properties = {name: {"type": "string"} for name in ("from", "to", "cik-A")}
    schema = {"type": "object", "properties": properties}
    registry.register(ToolDefinition("range_query", "", schema, Output({}), body))
    async with open_service(registry) as service:
        one = await service.run_code("return await tools.range_query({'from': 'a', 'to': 'b', 'cik-A': 'c'})")
        two = await service.run_code("return await tools.range_query(to='b', **{'from': 'a', 'cik-A': 'c'})")
    assert ["cik-A", "from", "to"] == one.result == two.result


async def test_f056_values_are_what_the_stub_says():
    registry = ToolRegistry()

    @registry.tool
    async def quote() -> tuple[decimal.Decimal, dt.datetime, uuid.UUID, dt.date, bytes]:
        """Say what something costs."""
        return (
            decimal.Decimal("0.10"),
            dt.datetime(2024, 1, 2, tzinfo=dt.UTC),
            uuid.UUID(int=1),
            dt.date(2030, 1, 2),
            b"\xff",
        )

    async with open_service(registry) as service:
        outcome = await service.run_code("q = await tools.quote()\nreturn [*q, q[1][:4]]")
    assert [
        "0.10",
        "2024-01-02T00:00:00+00:00",
        "00000000-0000-0000-0000-000000000001",
        "2030-01-02",
        "/w==",
        "2024",
    ] == outcome.result
    assert "list[str]" in render_stubs(registry.definitions())


async def test_f078_a_tight_loop_ends_with_the_limit_that_fired():
    async with open_service(corpus.fixture_registry()) as service:
        busy = await service.run_code("while True: pass", compute_seconds=0.2)
        after = await service.run_code("return 1")
    assert ("timeout", True) == (busy.failure.kind, "compute_seconds=0.2" in busy.failure.message)
    assert 1 == after.result


async def test_f083_f085_a_call_that_hangs_ends_with_the_run_and_the_limit_is_named(movable_clock):
    def listen(event):
        if event["type"] == "tool/code-dispatch-start":
            movable_clock.jump(31)

    settings = Settings(parked_workers=0)
    async with open_service(corpus.fixture_registry(), settings=settings, on_event=listen) as service:
        slow = await service.run_code("await tools.slow(ms=10**8)", wall_seconds=30)
        after = await service.run_code("return 1")
    assert ("timeout", True) == (slow.failure.kind, "wall_seconds=30" in slow.failure.message)
    assert ["failed"] == [call.status for call in slow.calls]
    assert 1 == after.result


async def test_f080_one_giant_power_is_ended_and_the_host_goes_on():
    ticks = []

    async def tick():
        while True:
            ticks.append(trio.current_time())
            await trio.sleep(0.01)

    async with open_service(corpus.fixture_registry()) as service, trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        outcome = await service.run_code("n = 10**(10**9)\nlen(str(n))", compute_seconds=0.3)
        nursery.cancel_scope.cancel()
    assert outcome.failure.kind in ("timeout", "memory-limit")
    assert len(ticks) >= 5


async def test_f066_f068_what_is_too_long_fails_with_the_limit_and_what_fits_gets_no_notice():
    async with open_service(corpus.fixture_registry()) as service:
        many = await service.run_code("for i in range(5000): print(i)", max_log_entries=100)
        fits = await service.run_code("for i in range(100): print(i)", max_log_entries=100)
        joined = "'\\n'.join(r['text'] for r in (await tools.big(n=600))['rows'])"
        long = await service.run_code(joined, max_output_bytes=1000)
    assert ("output-limit", 100) == (many.failure.kind, len(many.logs))
    assert "100 lines" in many.failure.message
    assert "max_log_entries" in many.failure.message
    assert (True, None, "\n".join(map(str, range(100)))) == (fits.ok, fits.hint, fits.content[0]["text"])
    assert "1000 bytes; the limit is max_output_bytes" in long.failure.message


async def test_f105_runs_at_the_same_time_do_not_mix():
    outcomes = {}
    async with open_service(corpus.fixture_registry()) as service, trio.open_nursery() as nursery:

        async def run(number):
            source = f"print({number})\nreturn await tools.echo(value={number})"
            outcomes[number] = await service.run_code(source)

        for number in range(30):
            nursery.start_soon(run, number)
    assert {number: (number, [str(number)]) for number in range(30)} == {
        number: (outcome.result, outcome.logs) for number, outcome in outcomes.items()
    }


async def test_f110_f111_a_policy_sees_who_calls_and_stops_the_body():
    registry = corpus.fixture_registry()
    seen = []

    def deny(call, proceed):
        seen.append((call.name, call.provenance, call.run_id))
        return Deny("not that file") if call.name == "read" else proceed()

    registry.on_pre_execute(deny)
    async with open_service(registry) as service:
        outcome = await service.run_code("await tools.read(path='/secret')")
        await service.call("add", {"a": 1, "b": 2})
    assert ("read", "code", outcome.run_id) in seen
    assert ("add", "direct") in [item[:2] for item in seen]
    assert "not that file" in outcome.failure.message
    assert [("read", False)] == [(call.tool, call.executed) for call in outcome.calls]


async def test_f126_a_call_is_announced_while_it_runs():
    started = trio.Event()

    def listen(event):
        if event["type"] == "tool/code-dispatch-start":
            started.set()

    registry = corpus.fixture_registry()
    async with open_service(registry, on_event=listen) as service, trio.open_nursery() as nursery:
        nursery.start_soon(service.run_code, "await tools.slow(ms=60000)")
        await started.wait()
        nursery.cancel_scope.cancel()


async def test_f013_f016_nothing_null_and_printed_are_told_apart():
    async with open_service(corpus.fixture_registry()) as service:
        null = await service.run_code("None")
        silent = await service.run_code("x = [].sort()")
        printed = await service.run_code("print('hi')")
    assert None is null.result
    assert ABSENT is silent.result
    assert (ABSENT, ["hi"]) == (printed.result, printed.logs)


async def test_f018_the_source_is_not_echoed():
    async with open_service(corpus.fixture_registry()) as service:
        outcome = await service.run_code("# a comment that is long enough\n" * 600 + "1")
    assert "1" == outcome.content[0]["text"]


async def test_f033_the_hint_about_decoded_data_is_only_where_it_belongs():
    start = "import json\nr = await tools.search(query='a', page=1)\n"
    async with open_service(corpus.fixture_registry()) as service:
        data = await service.run_code(start + "json.loads(r)['items']")
        other = await service.run_code(start + "1 / 0")
    assert "without json.loads" in data.failure.hint
    assert None is other.failure.hint
