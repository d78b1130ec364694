"""Estimates of memory over HTTP."""

from typing import Any

import pytest

from tests.fixtures.memory import make_llama
from tests.fixtures.registry import assert_problem, make_base_model, make_caller, store_files
from tests.training.engine.memory.test_model_shape import LLAMA2_7B
from training.api.memory import MemoryEstimateSerializer
from training.engine.memory.comparison import compare_methods
from training.engine.memory.request import EstimateRequest

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

URL = "/api/v1/memory-estimates"


def ask(scope: str = "read", **body: Any) -> Any:
    return make_caller(scope).client.post(URL, body, format="json")


def test_a_registered_base_model() -> None:
    make_llama()
    answer = ask(base_model="llama", cards=["24GB", "80GB x 8"])
    assert answer.status_code == 200, answer.content
    document = answer.json()
    assert document["model"]["num_parameters"] == 6_738_415_616
    assert [method["method"] for method in document["methods"]] == ["full", "lora", "qlora"]
    assert document["methods"][1]["num_trained"] == 39_976_960
    assert [card["fitting"] for card in document["cards"]] == [["lora", "qlora"], ["full", "lora", "qlora"]]
    assert document["doubts"] == []


def test_a_configuration_that_is_not_registered() -> None:
    answer = ask(base_model=LLAMA2_7B, method="qlora", rank=8, layers=16, target_modules=["q_proj"])
    assert answer.status_code == 200, answer.content
    methods = answer.json()["methods"]
    assert [method["num_trained"] for method in methods] == [16 * 8 * 8192]
    assert answer.json()["request"]["layers"] == 16


def test_where_nothing_fits_it_says_what_to_change() -> None:
    changes = ask(base_model=LLAMA2_7B, cards=["16GB"], method="lora").json()["cards"][0]["changes"]
    assert [(change["method"], change["fits"]) for change in changes] == [("qlora", True)]


def test_weights_that_hold_another_number_are_told() -> None:
    make_llama(num_parameters=7_500_000_000)
    assert [doubt["code"] for doubt in ask(base_model="llama").json()["doubts"]] == ["parameters-differ"]


def test_the_described_answer_is_the_whole_answer() -> None:
    value = compare_methods(LLAMA2_7B, EstimateRequest.from_json({"cards": ["16GB", "24GB x 2"]})).to_json()
    assert MemoryEstimateSerializer(value).data == value


def test_every_fault_of_the_body_at_once() -> None:
    problem = assert_problem(
        ask(base_model=7, cards=["24GB", "A100"], tokens=0, rank="x", method="prefix", batch=2),
        422,
        "validation-failed",
    )
    places = {fault["where"]: fault["code"] for fault in problem["errors"]}
    assert places.keys() == {"/base_model", "/cards/1", "/tokens", "/rank", "/method", "/batch"}
    assert places["/cards/1"] == "card-unreadable"
    assert places["/batch"] == "unknown-field"


def test_faults_of_the_request_and_of_the_configuration_at_once() -> None:
    body: dict[str, Any] = {"base_model": {"hidden_size": 10**30}, "target_modules": ["q_proj", "q_proj"]}
    problem = assert_problem(ask(**body), 422, "memory-estimate-invalid")
    assert {fault["where"] for fault in problem["errors"]} == {
        "/target_modules",
        "/base_model/hidden_size",
        "/base_model/num_attention_heads",
        "/base_model/num_hidden_layers",
        "/base_model/vocab_size",
        "/base_model/intermediate_size",
    }


def test_faults_of_what_is_asked_of_the_model() -> None:
    problem = assert_problem(
        ask(base_model=LLAMA2_7B, layers=40, target_modules=["W_pack"]), 422, "memory-estimate-invalid"
    )
    assert [(fault["code"], fault["where"]) for fault in problem["errors"]] == [
        ("layers-out-of-range", "/layers"),
        ("target-module-unknown", "/target_modules"),
    ]


def test_a_base_model_that_is_not_there() -> None:
    make_llama()
    problem = assert_problem(ask(base_model="lama"), 422, "memory-estimate-invalid")
    assert [(fault["code"], fault["where"]) for fault in problem["errors"]] == [
        ("base-model-not-found", "/base_model")
    ]
    assert "llama" in problem["errors"][0]["message"]


def test_a_registered_model_whose_shape_cannot_be_told() -> None:
    # Its config.json holds nothing but a name.
    make_base_model("tiny")
    problem = assert_problem(ask(base_model="tiny"), 422, "memory-estimate-invalid")
    assert "config.json hidden_size" in {fault["where"] for fault in problem["errors"]}


@pytest.mark.parametrize("content", [b"[]", b"{", b"\xff", b" " * 1_100_000])
def test_a_registered_configuration_that_cannot_be_read(content: bytes) -> None:
    model = make_llama()
    model.artifact = store_files({"config.json": content}, kind="base_model")
    model.save()
    problem = assert_problem(ask(base_model="llama"), 422, "memory-estimate-invalid")
    assert [fault["code"] for fault in problem["errors"]] == ["model-config-unreadable"]


def test_a_model_without_configuration() -> None:
    model = make_llama()
    model.artifact = store_files({"model.safetensors": b""}, kind="base_model")
    model.save()
    problem = assert_problem(ask(base_model="llama"), 422, "memory-estimate-invalid")
    assert [fault["code"] for fault in problem["errors"]] == ["file-not-found"]


def test_rights() -> None:
    assert ask("submit", base_model=LLAMA2_7B).status_code == 200
    assert_problem(ask("pull", base_model=LLAMA2_7B), 403, "scope-missing")
    assert make_caller("read").client.get(URL).status_code == 405


def test_it_is_described() -> None:
    schema = make_caller("read").client.get("/api/v1/schema", HTTP_ACCEPT="application/json").json()
    operation = schema["paths"]["/api/v1/memory-estimates"]["post"]
    assert operation["operationId"] == "memory_estimates_create"
    fields = schema["components"]["schemas"]["MemoryEstimateCreateRequest"]["properties"]
    assert {option["type"] for option in fields["base_model"]["oneOf"]} == {"string", "object"}
