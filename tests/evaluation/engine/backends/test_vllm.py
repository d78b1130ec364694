"""A real vLLM engine on a tiny model: base, adapter and merged, each in a process of its own."""

import importlib.util
from pathlib import Path

import pytest

from evaluation.engine.adapter_source import prepare_adapter
from evaluation.engine.backends.base import BackendConfig, ContinuationRequest, GenerationRequest
from evaluation.engine.backends.transformers import TransformersBackend
from evaluation.engine.generation import run_phase
from evaluation.engine.parity import compare_outputs
from evaluation.engine.phase import PhaseResult, PhaseSpec
from evaluation.engine.progress import SilentReporter
from tests.evaluation.engine.backends.models import tiny_adapter_and_merged
from tests.fixtures.models import random_llama, smollm2_tokenizer

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed"),
]

CONFIG = BackendConfig(name="vllm", dtype="bfloat16", max_model_len=128, max_num_seqs=8)
TEXTS = ["hello", "the printer is broken", "2 + 2 =", "once upon a time", "urgent: no network", "{"]


def generations() -> tuple[GenerationRequest, ...]:
    return tuple(
        GenerationRequest(
            request_id=text,
            prompt_token_ids=(1, *smollm2_tokenizer().encode(text, add_special_tokens=False)),
            max_tokens=8,
            stop_token_ids=(2,),
            num_logprobs=20,
        )
        for text in TEXTS
    )


def continuations() -> tuple[ContinuationRequest, ...]:
    return tuple(
        ContinuationRequest(
            request_id=option,
            prompt_token_ids=(1, 50, 60),
            continuation_token_ids=tuple(smollm2_tokenizer().encode(option, add_special_tokens=False)),
        )
        for option in ("egg cell", "a blood cell", "nerve")
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PhaseResult]:
    folder = tmp_path_factory.mktemp("phases")
    adapter, merged = tiny_adapter_and_merged()

    def run(name: str, model: Path, use_adapter: bool) -> PhaseResult:
        source = prepare_adapter(adapter, folder / "adapters") if use_adapter else None
        spec = PhaseSpec(
            model=model,
            adapter=source,
            backend=CONFIG,
            generations=generations(),
            continuations=() if use_adapter else continuations(),
        )
        return run_phase(folder / name, spec, SilentReporter())

    return {
        "base": run("base", random_llama(), False),
        "adapter": run("adapter", random_llama(), True),
        "merged": run("merged", merged, False),
    }


def test_every_request_is_answered_with_logprobs(results: dict[str, PhaseResult]) -> None:
    for result in results.values():
        assert set(result.generations) == set(TEXTS)
        for output in result.generations.values():
            assert output.logprobs is not None
            assert len(output.logprobs) == len(output.token_ids) <= 8
            assert output.finish_reason == ("stop" if output.token_ids[-1] == 2 else "length")


def test_the_adapter_is_really_applied_and_the_merged_model_agrees(results: dict[str, PhaseResult]) -> None:
    adapter, merged, base = (results[form].generations for form in ("adapter", "merged", "base"))
    comparisons = [compare_outputs(text, adapter[text], merged[text]) for text in TEXTS]
    assert [c for c in comparisons if c.agreement == "diverged"] == []
    assert any(adapter[text].token_ids != base[text].token_ids for text in TEXTS)


@pytest.mark.parametrize("form", ["base", "merged"])
def test_continuation_likelihoods_are_those_of_transformers(
    results: dict[str, PhaseResult], form: str
) -> None:
    model = random_llama() if form == "base" else tiny_adapter_and_merged()[1]
    config = BackendConfig(name="transformers", dtype="float32", max_model_len=128)
    exact = TransformersBackend(model, None, config).score(continuations(), lambda fraction, message: None)
    for score in exact:
        # bf16 against fp32: log-probabilities near -11 have bf16 steps of 0.06.
        found = results[form].continuations[score.request_id].token_logprobs
        assert found == pytest.approx(score.token_logprobs, abs=0.1)


def test_the_fingerprint_is_the_same_for_every_form(results: dict[str, PhaseResult]) -> None:
    digests = {result.fingerprint["digest"] for result in results.values()}
    assert len(digests) == 1
    assert results["base"].fingerprint["dtype"] == "bfloat16"
