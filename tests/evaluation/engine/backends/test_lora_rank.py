import pytest

from evaluation.engine.backends.base import BackendError
from evaluation.engine.backends.lora_rank import allowed_lora_rank


@pytest.mark.parametrize(("rank", "allowed"), [(1, 1), (2, 8), (16, 16), (17, 32), (257, 320), (512, 512)])
def test_ranks_are_rounded_up_to_what_vllm_takes(rank: int, allowed: int) -> None:
    assert allowed_lora_rank(rank) == allowed


def test_a_rank_that_vllm_does_not_serve_is_refused() -> None:
    with pytest.raises(BackendError) as error:
        allowed_lora_rank(513)
    assert error.value.code == "adapter-rank-too-high"
