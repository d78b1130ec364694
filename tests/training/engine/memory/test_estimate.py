from dataclasses import replace

import pytest

from tests.training.engine.memory.test_model_shape import shape_of
from training.engine.memory.estimate import MemoryRequest, estimate_memory, suggest_changes

SEVEN_BILLION = 7e9
"""The guide counts 7B as 7,000,000,000."""


def lines_of(request: MemoryRequest) -> dict[str, float]:
    return {line.name: line.high_bytes for line in estimate_memory(shape_of(), request).lines}


def test_the_guides_full_fine_tuning_of_a_7b_model() -> None:
    # MISSION B1: 16 bytes a parameter, 7B x 16 = 112 GB of model states.
    states = lines_of(MemoryRequest(method="full"))["trained_states"]
    per_parameter = states / shape_of().num_parameters
    assert per_parameter * SEVEN_BILLION == pytest.approx(112e9)


def test_bf16_moments_take_12_bytes() -> None:
    # The guide: 7B x 12 = 84 GB.
    states = lines_of(MemoryRequest(method="full", has_short_moments=True))["trained_states"]
    assert states / shape_of().num_parameters * SEVEN_BILLION == pytest.approx(84e9)


def test_the_guides_lora_at_2048_tokens() -> None:
    # The guide's ledger: 14 + 0.6 + 0.5 + 2 to 3 + 2 = 19 to 20 GB, with 7.0B for the 6.74B parameters.
    estimate = estimate_memory(shape_of(), MemoryRequest(method="lora"))
    rounded_up = (SEVEN_BILLION - estimate.num_parameters) * 2
    assert 19 <= round((estimate.low_bytes + rounded_up) / 1e9) <= 20
    assert 19 <= round((estimate.high_bytes + rounded_up) / 1e9) <= 20
    lines = lines_of(MemoryRequest(method="lora"))
    # 2048 x 1 x 4096 x 2 x 32 bytes, and 39,976,960 x 16 bytes.
    assert lines["activations"] == 536_870_912
    assert lines["trained_states"] == 639_631_360


def test_quantised_weights_take_half_a_byte() -> None:
    estimate = estimate_memory(shape_of(), MemoryRequest(method="qlora"))
    assert estimate.lines[0].low_bytes == 6_738_415_616 / 2


def test_at_most_embeddings_and_norms_stay_unquantised_and_scales_are_kept() -> None:
    # By hand: 2 x 32000 x 4096 of embedding and output layer, 65 x 4096 of norms, 2 bytes each; 4.127 bits
    # for the rest.
    kept = 2 * 32_000 * 4096 + 65 * 4096
    expected = 2 * kept + (6_738_415_616 - kept) * 4.127 / 8
    assert lines_of(MemoryRequest(method="qlora"))["frozen_weights"] == pytest.approx(expected)


BLOCK_INPUTS = 6 * 4096 + 11_008
"""Of Llama-2-7B by hand: q, k, v, o, gate and up take 4096 each, down takes 11008."""


def test_the_guides_buffers_hold_for_its_own_rows() -> None:
    # One block anew and all logits: 2048 x (35584 x 17 + 32000 x 12) bytes = 2.03 GB, below 3.
    line = estimate_memory(shape_of(), MemoryRequest(method="lora")).lines[3]
    assert (line.name, line.low_bytes, line.high_bytes) == ("buffers", 2e9, 3e9)
    assert line.how == "2-3 GB of buffers"


def test_large_batches_outgrow_the_guides_buffers() -> None:
    request = MemoryRequest(method="lora", batch_size=8, length_tokens=4096)
    line = estimate_memory(shape_of(), request).lines[3]
    assert line.low_bytes == 32_768 * 4096 * 34
    assert line.high_bytes == 32_768 * (BLOCK_INPUTS * 17 + 32_000 * 12)


def test_without_checkpointing_no_block_is_computed_anew() -> None:
    request = MemoryRequest(method="lora", batch_size=8, length_tokens=4096, has_checkpointing=False)
    _, _, activations, buffers, _ = estimate_memory(shape_of(), request).lines
    assert buffers.high_bytes == 32_768 * 32_000 * 12
    assert activations.low_bytes == 32_768 * 4096 * 34 * 32
    assert activations.high_bytes == 32_768 * BLOCK_INPUTS * 10.5 * 32


def test_full_fine_tuning_has_no_copies_of_adapters() -> None:
    request = MemoryRequest(method="full", batch_size=8, length_tokens=4096)
    assert lines_of(request)["buffers"] == 32_768 * (4096 * 34 + 32_000 * 12)
    assert lines_of(replace(request, has_checkpointing=False))["activations"] == 32_768 * 4096 * 34 * 32


SMOLLM2 = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9}
WIDE = {"hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 32}
LOGITS = 15 / 1322.5 * 49_152 * 12
"""Bytes a token: 15 of the tokens between the two measurements were an answer's."""


@pytest.mark.parametrize(
    ("sizes", "has_checkpointing", "measured"),
    [
        # Peak resident bytes of the trainer with 4 rows of 440.6 tokens less those with one row of 440,
        # 1322.5 tokens further: bf16 on a CPU, LoRA on all seven projections, freed memory given back at once
        # (MALLOC_MMAP_THRESHOLD_=65536).
        (SMOLLM2, True, (631_549_952 - 467_935_232) / 1322.5),
        (SMOLLM2, False, (3_075_260_416 - 1_041_149_952) / 1322.5),
        (WIDE, True, (703_811_584 - 504_922_112) / 1322.5),
        (WIDE, False, (2_158_329_856 - 851_181_568) / 1322.5),
    ],
)
def test_what_a_token_costs_is_what_was_measured(
    sizes: dict[str, int], has_checkpointing: bool, measured: float
) -> None:
    shape = shape_of(**sizes, vocab_size=49_152)
    # Rows so long that the guide's 2-3 GB do not matter.
    few, many = (
        estimate_memory(
            shape,
            MemoryRequest(method="lora", length_tokens=tokens, has_checkpointing=has_checkpointing),
        )
        for tokens in (1_000_000, 2_000_000)
    )
    low = (many.low_bytes - few.low_bytes) / 1e6
    high = (many.high_bytes - few.high_bytes) / 1e6 - 49_152 * 12
    assert low <= measured - LOGITS <= high <= 1.15 * (measured - LOGITS)


def test_sharding_divides_what_data_parallelism_holds_on_each_card() -> None:
    alone = lines_of(MemoryRequest(method="full", num_cards=8))["trained_states"]
    sharded = lines_of(MemoryRequest(method="full", num_cards=8, is_sharded=True))["trained_states"]
    assert alone == 8 * sharded


def test_what_fits_needs_no_change() -> None:
    assert suggest_changes(shape_of(), MemoryRequest(method="lora"), card_bytes=24e9) == ()


def test_changes_come_in_the_order_of_treatment_and_quantisation_last() -> None:
    request = MemoryRequest(method="lora", batch_size=8, length_tokens=8192, has_checkpointing=False)
    changes = suggest_changes(shape_of(), request, card_bytes=10e9)
    assert [change.what.split(" ")[0] for change in changes] == [
        "batch",
        "4096",
        "2048",
        "1024",
        "gradient",
        "QLoRA,",
    ]
    assert changes[-1].fits
    assert not any(change.fits for change in changes[:-1])


def test_changes_that_save_next_to_nothing_are_left_out() -> None:
    changes = suggest_changes(shape_of(), MemoryRequest(method="full", batch_size=2), card_bytes=24e9)
    assert [change.what for change in changes] == ["LoRA instead of full fine-tuning"]


def test_nothing_helps_on_a_card_that_is_too_small() -> None:
    changes = suggest_changes(shape_of(), MemoryRequest(method="lora"), card_bytes=4e9)
    assert changes
    assert not changes[-1].fits


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ValueError, match="full, lora, qlora"):
        estimate_memory(shape_of(), MemoryRequest(method="prefix"))
