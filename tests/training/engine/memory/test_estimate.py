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


def test_the_guides_buffers_hold_for_its_own_rows() -> None:
    # One block anew and all logits: 2048 x (4096 x 34 + 32000 x 12) bytes = 1.07 GB, below 2-3 GB.
    line = estimate_memory(shape_of(), MemoryRequest(method="lora")).lines[3]
    assert (line.name, line.low_bytes, line.high_bytes) == ("buffers", 2e9, 3e9)


def test_large_batches_outgrow_the_guides_buffers() -> None:
    request = MemoryRequest(method="lora", batch_size=8, length_tokens=4096)
    line = estimate_memory(shape_of(), request).lines[3]
    assert line.low_bytes == 32_768 * 4096 * 34
    assert line.high_bytes == 32_768 * (4096 * 34 + 32_000 * 12)


def test_the_margin_is_for_full_fine_tuning_alone() -> None:
    lines = lines_of(MemoryRequest(method="full"))
    margin = lines.pop("margin")
    assert margin == pytest.approx(0.3 * sum(lines.values()))
    assert "margin" not in lines_of(MemoryRequest(method="lora"))


def test_without_checkpointing_no_block_is_computed_anew() -> None:
    request = MemoryRequest(method="lora", batch_size=8, length_tokens=4096, has_checkpointing=False)
    lines = lines_of(request)
    assert lines["buffers"] == 32_768 * 32_000 * 12
    assert lines["activations"] == 32_768 * 4096 * 34 * 32


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
