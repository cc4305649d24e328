"""Call budgets and redaction, and that policy sees every route."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.values import encode
from tool_bindings import Accept, Ask, Block, DefinitionError, Deny, ScriptedApproval, text_block
from tool_bindings.budgets import CallBudget
from tool_bindings.redaction import SecretMasker, redact_results


class TestEveryRoute:
    async def test_nested_direct_batch_and_mcp_calls_meet_the_same_policies(self, registry, define):
        """Issue 5, point 6: asks, denials and observations are counted for each route."""
        asks, denials, observed = [], [], []
        registry.register(define())
        registry.approval_provider = ScriptedApproval(["allowed-once"] * 4)

        async def pre(call, proceed):
            asks.append(call.provenance)
            return Ask()

        def guard(call):
            if call.arguments.get("forbidden"):
                denials.append(call.provenance)
                return "forbidden"
            return None

        registry.on_pre_execute(pre)
        registry.add_guard(guard)
        registry.on_result(lambda call, result: observed.append((call.provenance, result.is_error)))
        outer = registry.begin("echo", {})
        routes = ["direct", "code", "batch", "mcp"]
        for route in routes:
            parent = outer.token if route == "code" else None
            await registry.dispatch(
                "echo", {"forbidden": True}, session="s", provenance=route, run_id="r", parent=parent
            )
        assert (
            routes
            == asks
            == denials
            == [request.provenance for request in registry.approval_provider.requests]
        )
        assert [(route, True) for route in routes] == observed


class TestBudget:
    async def test_calls_beyond_the_budget_are_denied_on_any_route(self, registry, define):
        registry.register(define("search"))
        registry.register(define("free"))
        budget = CallBudget({"search": 2})
        lift = budget.install(registry)
        outer = registry.begin("free", {})
        assert not (await registry.dispatch("search", {})).is_error
        assert not (await registry.dispatch("search", {}, parent=outer.token, provenance="code")).is_error
        result = await registry.dispatch("search", {}, provenance="mcp")
        assert 'the call budget of tool "search" is used up: 2 calls are allowed' == result.error.message
        assert not (await registry.dispatch("free", {})).is_error
        assert 2 == budget.used("search")
        lift()
        assert not (await registry.dispatch("search", {})).is_error

    async def test_each_root_call_may_have_a_budget_of_its_own(self, registry, define):
        registry.register(define("search"))
        registry.register(define("root"))
        budget = CallBudget({"search": 1}, per_root_call=True)
        budget.install(registry)
        for number in range(3):
            root = registry.begin("root", {}, call_id=f"c{number}")
            nested = {"parent": root.token, "root_call_id": root.call_id}
            assert not (await registry.dispatch("search", {}, **nested)).is_error
            denied = await registry.dispatch("search", {}, **nested)
            assert denied.error.message.endswith("1 calls are allowed in one run")
            await root.prepare()
            await root.execute()
            await root.finish()
        assert 0 == budget.used("search")

    async def test_a_call_that_another_policy_denied_costs_nothing(self, registry, define):
        registry.register(define("search"))
        budget = CallBudget({"search": 1})
        budget.install(registry)
        dispose = registry.on_pre_execute(lambda call, proceed: Deny("not now"))
        await registry.dispatch("search", {})
        dispose()
        assert not (await registry.dispatch("search", {})).is_error

    @pytest.mark.parametrize("limit", [-1, 1.5, True, "1"])
    def test_a_budget_is_a_whole_number(self, limit):
        with pytest.raises(DefinitionError, match="must be a whole number >= 0"):
            CallBudget({"search": limit})


SECRET = 'hunter2"\\é\n'


class TestMasker:
    @pytest.mark.parametrize(
        "written",
        [
            SECRET,
            json.dumps(SECRET),
            json.dumps(SECRET, ensure_ascii=False),
            json.dumps({"a": json.dumps([SECRET])})[1:-1].replace('\\\\\\"', '\\"').replace("\\\\", "\\"),
            repr(SECRET),
            "hunter2%22%5C%C3%A9%0A",
            "aHVudGVyMiJcw6kK",
        ],
    )
    def test_every_usual_spelling_is_masked(self, written):
        masked = SecretMasker([SECRET]).mask_text(f"before {written} after")
        assert "hunter2" not in masked
        assert "aHVudGVy" not in masked
        assert masked.startswith("before ")
        assert masked.endswith(" after")

    @given(
        st.recursive(
            st.text("abcd12") | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text("abcd12"), x)
        )
    )
    def test_masked_json_stays_json_and_holds_no_secret(self, value):
        masker = SecretMasker(["abcd", "1212"])
        masked = masker.mask(value)
        text = encode(masked).decode()
        assert masked == json.loads(text)
        assert "abcd" not in text
        assert "1212" not in text
        assert masked == json.loads(masker.mask_text(text))

    def test_a_longer_secret_is_masked_before_one_it_contains(self):
        assert "[secret]" == SecretMasker(["abcd", "abcdefgh"]).mask_text("abcdefgh")

    def test_keys_and_numbers_are_masked_and_nothing_is_lost(self):
        masked = SecretMasker(["abcd", "abce", "123456"]).mask(
            {"abcd": 1, "abce": 2, "n": 1234567, "m": 12.5}
        )
        assert {"[secret]": 1, "[secret] 2": 2, "n": "[secret]", "m": 12.5} == masked

    def test_a_clean_value_is_returned_as_it_is(self):
        value = {"a": [1, "b"]}
        assert value is SecretMasker(["secret-value"]).mask(value)
        assert value is SecretMasker([]).mask(value)

    def test_patterns_find_secrets_that_are_not_known_before(self):
        """Field report F122: values made at run time."""
        masker = SecretMasker([], patterns=[r"PASSWORD \w+"])
        assert {"value": "[secret]!"} == masker.mask({"value": "PASSWORD 0a1b2c!"})
        with pytest.raises(DefinitionError, match="not a regular expression"):
            SecretMasker([], patterns=["("])

    def test_a_short_secret_is_refused(self):
        with pytest.raises(DefinitionError, match="at least 4 characters"):
            SecretMasker(["abc"])

    def test_depth_has_no_bound(self):
        value: object = "xx-secret-xx"
        for _ in range(20_000):
            value = [value]
        assert b"[secret]" in encode(SecretMasker(["-secret-"]).mask(value))


class TestRedactResults:
    async def test_the_value_is_masked_for_everybody(self, registry, define):
        """Issue 5, point 7: program, content, events and observers all see the replacement."""
        observed = []
        registry.register(define(render=lambda arguments, value: [text_block(f"key={value['key']}")]))
        redact_results(registry, SecretMasker(["hunter22"]))
        registry.on_result(lambda call, result: observed.append(result.value))
        result = await registry.dispatch("echo", {"x": {"key": "hunter22"}})
        assert {"key": "[secret]"} == result.value == observed[0]
        assert [text_block("key=[secret]")] == result.content

    async def test_errors_are_masked_and_keep_their_code(self, registry, define):
        async def fail(arguments, context):
            raise ValueError("bad key hunter22")

        registry.register(define(execute=fail))
        redact_results(registry, SecretMasker(["hunter22"]))
        result = await registry.dispatch("echo", {})
        assert "bad key [secret]" == result.error.message
        assert [text_block("Error: bad key [secret]")] == result.content

    async def test_content_only_leaves_the_value_to_programs(self, registry, define):
        registry.register(define())
        lift = redact_results(registry, SecretMasker(["hunter22"]), content_only=True)
        result = await registry.dispatch("echo", {"x": "hunter22"})
        assert ("hunter22", [text_block("[secret]")]) == (result.value, result.content)
        lift()
        assert [text_block("hunter22")] == (await registry.dispatch("echo", {"x": "hunter22"})).content

    @pytest.mark.parametrize(
        ("decision", "expected"),
        [
            (Accept(content=[text_block("hunter22!")]), ("clean", "[secret]!")),
            (Accept(value="hunter22"), ("[secret]", "[secret]")),
            (Accept(), ("clean", "clean")),
        ],
    )
    async def test_what_other_policies_put_in_is_masked_too(self, registry, define, decision, expected):
        registry.register(define())
        redact_results(registry, SecretMasker(["hunter22"]))
        registry.on_post_execute(lambda call, result, proceed: decision)
        result = await registry.dispatch("echo", {"x": "clean"})
        assert expected == (result.value, result.content[0]["text"])

    async def test_a_block_stays_a_block(self, registry, define):
        registry.register(define())
        redact_results(registry, SecretMasker(["hunter22"]))
        registry.on_post_execute(lambda call, result, proceed: Block([text_block("no")]))
        assert "no" == (await registry.dispatch("echo", {})).error.message
