import pytest
import torch
from transformers import AutoModelForCausalLM

from evaluation.engine.adapter_source import adapter_rank
from evaluation.engine.backends.base import (
    AdapterSource,
    BackendConfig,
    BackendError,
    ContinuationRequest,
    GenerationRequest,
)
from evaluation.engine.backends.transformers import TransformersBackend
from tests.evaluation.engine.backends.models import tiny_adapter_and_merged
from tests.fixtures.models import random_llama

# fp32, so that batched and single runs agree to far below the gap between two tokens.
CONFIG = BackendConfig(name="transformers", dtype="float32", max_model_len=64, max_num_seqs=3)
PROMPTS = [(1, 50, 60), (1, 70), (1, 80, 90, 100, 110, 120), (1, 130, 140, 150), (1, 160)]


def ignore(fraction: float, message: str) -> None:
    del fraction, message


def request(number: int, max_tokens: int = 6, num_logprobs: int = 0, stop: int = 2) -> GenerationRequest:
    return GenerationRequest(
        request_id=str(number),
        prompt_token_ids=PROMPTS[number],
        max_tokens=max_tokens,
        stop_token_ids=(stop,),
        num_logprobs=num_logprobs,
    )


@pytest.fixture(scope="module")
def base() -> TransformersBackend:
    return TransformersBackend(random_llama(), None, CONFIG)


@pytest.fixture(scope="module")
def adapted() -> TransformersBackend:
    adapter, _ = tiny_adapter_and_merged()
    rank = adapter_rank(adapter / "adapter_model.safetensors")
    return TransformersBackend(
        random_llama(), AdapterSource(path=adapter, name="adapter-t", rank=rank), CONFIG
    )


def test_batches_give_what_single_prompts_give_in_the_order_of_the_requests(
    adapted: TransformersBackend,
) -> None:
    requests = [request(number) for number in range(len(PROMPTS))]
    together = adapted.generate(requests, ignore)
    assert [output.request_id for output in together] == ["0", "1", "2", "3", "4"]
    assert together == [adapted.generate([single], ignore)[0] for single in requests]


def test_greedy_decoding_is_the_argmax_of_the_models_own_logits(base: TransformersBackend) -> None:
    model = AutoModelForCausalLM.from_pretrained(random_llama(), dtype=torch.float32)
    tokens = list(PROMPTS[2])
    for _ in range(4):
        tokens.append(int(model(torch.tensor([tokens])).logits[0, -1].argmax()))
    (output,) = base.generate([request(2, max_tokens=4)], ignore)
    assert list(output.token_ids) == tokens[len(PROMPTS[2]) :]
    assert (output.finish_reason, output.num_prompt_tokens) == ("length", 6)


def test_generation_ends_at_the_stop_token(base: TransformersBackend) -> None:
    free = base.generate([request(0)], ignore)[0].token_ids
    (output,) = base.generate([request(0, stop=free[0])], ignore)
    assert (output.token_ids, output.finish_reason, output.text) == (free[:1], "stop", "")


def test_requests_with_other_limits_are_batched_apart(base: TransformersBackend) -> None:
    outputs = base.generate([request(0, max_tokens=2), request(1, max_tokens=5)], ignore)
    assert [len(output.token_ids) for output in outputs] == [2, 5]


def test_logprobs_hold_the_generated_token_as_the_likeliest(adapted: TransformersBackend) -> None:
    (output,) = adapted.generate([request(3, num_logprobs=4)], ignore)
    assert output.logprobs is not None
    assert len(output.logprobs) == len(output.token_ids)
    for token, likely in zip(output.token_ids, output.logprobs, strict=True):
        assert len(likely) == 4
        assert likely[token] == max(likely.values()) <= 0


def test_continuation_scores_are_log_softmax_of_the_logits(base: TransformersBackend) -> None:
    model = AutoModelForCausalLM.from_pretrained(random_llama(), dtype=torch.float32)
    logprobs = torch.log_softmax(model(torch.tensor([[1, 50, 60, 70, 80]])).logits[0].detach(), dim=-1)
    score_request = ContinuationRequest(
        request_id="s", prompt_token_ids=(1, 50, 60), continuation_token_ids=(70, 80)
    )
    (score,) = base.score([score_request], ignore)
    expected = (float(logprobs[2, 70]), float(logprobs[3, 80]))
    assert score.token_logprobs == pytest.approx(expected, abs=1e-5)


def test_an_adapter_at_run_time_answers_as_the_merged_model(
    base: TransformersBackend, adapted: TransformersBackend
) -> None:
    _, folder = tiny_adapter_and_merged()
    # The merged weights are rounded to bf16, so likelihoods are compared, at a tolerance of that rounding.
    merged = TransformersBackend(folder, None, CONFIG)
    score_request = ContinuationRequest(
        request_id="s", prompt_token_ids=(1, 50, 60), continuation_token_ids=(70, 80)
    )
    scores = [backend.score([score_request], ignore)[0].token_logprobs for backend in (base, adapted, merged)]
    assert scores[1] == pytest.approx(scores[2], abs=0.05)
    assert scores[0] != pytest.approx(scores[1], abs=0.05)


def test_a_prompt_that_does_not_fit_is_refused(base: TransformersBackend) -> None:
    with pytest.raises(BackendError, match="max_model_len 64"):
        base.generate([request(0, max_tokens=62)], ignore)


def test_the_fingerprint_names_libraries_dtype_and_device(base: TransformersBackend) -> None:
    fingerprint = base.fingerprint()
    assert (fingerprint["backend"], fingerprint["dtype"]) == ("transformers", "float32")
    assert {"torch", "transformers", "peft"} <= fingerprint["libraries"].keys()
    assert len(fingerprint["digest"]) == 64
