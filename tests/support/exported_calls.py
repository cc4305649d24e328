"""Tools whose calls end in every way an exporter tells apart, for the tests of exporters and of records."""

from __future__ import annotations

import trio

from tool_bindings import Output, ToolDefinition, ToolRegistry
from tool_bindings.annotated import SCHEMA
from tool_bindings.results import ToolSuccess

PARTIAL = {
    "schema": SCHEMA,
    "status": "failed",
    "content": [{"type": "text", "text": "secret detail"}],
    "error": {"message": "secret detail", "code": "partial"},
    "raw": {"relation": "adjacent"},
}


def exported_registry():
    """Return a registry with one tool for each way a call may end, `foreign` by another's hand."""
    registry = ToolRegistry()

    async def plain(_arguments, _context):
        await trio.lowlevel.checkpoint()
        return 1

    async def partial(_arguments, context):
        context.annotate(PARTIAL)
        return {"done": 2}

    async def broken(_arguments, _context):
        raise ValueError("secret detail")

    async def foreign(_arguments, _context):
        return "never seen"

    async def wait(_arguments, _context):
        await trio.sleep_forever()

    for body in (plain, partial, broken, foreign, wait):
        registry.register(
            ToolDefinition(
                body.__name__, "A tool.", {"type": "object"}, Output({}), body, concurrency_safe=True
            )
        )

    async def raw_json(call, proceed):
        result = await proceed()
        return ToolSuccess(7, []) if call.name == "foreign" else result

    registry.around(raw_json)
    return registry


async def scripted_run(registry, number, nested):
    """Make one call that makes calls, as a program's run does."""
    run_id = f"run-{number}"

    async def outer(_arguments, _context):
        async with trio.open_nursery() as nursery:
            for position, name in enumerate(nested):
                nursery.start_soon(inner, f"{run_id}:code:{position}", name)
        return number

    async def inner(call_id, name):
        ids = {"call_id": call_id, "root_call_id": run_id, "parent_call_id": run_id, "run_id": run_id}
        await registry.dispatch(name, {}, parent=call.token, provenance="code", **ids)

    name = f"outer_{number}"
    dispose = registry.register(ToolDefinition(name, "A run.", {"type": "object"}, Output({}), outer))
    call = registry.begin(name, {}, call_id=run_id, run_id=run_id)
    await call.prepare()
    await call.execute()
    await call.finish()
    dispose()
