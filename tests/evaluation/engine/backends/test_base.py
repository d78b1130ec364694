import pytest

from evaluation.engine.backends.base import (
    BackendError,
    ContinuationRequest,
    GenerationRequest,
    check_lengths,
)


def test_requests_that_do_not_fit_are_named_together() -> None:
    fits = GenerationRequest(request_id="fits", prompt_token_ids=(1,) * 6, max_tokens=4, stop_token_ids=())
    long = GenerationRequest(request_id="long", prompt_token_ids=(1,) * 7, max_tokens=4, stop_token_ids=())
    # vLLM generates one token after a scored prompt: 5 + 4 + 1 tokens fit into 10, one more does not.
    scored = ContinuationRequest(
        request_id="scored", prompt_token_ids=(1,) * 5, continuation_token_ids=(1,) * 4
    )
    option = ContinuationRequest(
        request_id="option", prompt_token_ids=(1,) * 6, continuation_token_ids=(1,) * 4
    )
    check_lengths([fits], [scored], 10)
    with pytest.raises(BackendError, match="long, option") as error:
        check_lengths([fits, long], [scored, option], 10)
    assert error.value.code == "prompt-too-long"
