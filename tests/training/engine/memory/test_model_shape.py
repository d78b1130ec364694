from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.errors import ConfigInvalid
from training.engine.memory.model_shape import ModelShape, read_model_shape

LLAMA2_7B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "vocab_size": 32000,
    "intermediate_size": 11008,
    "tie_word_embeddings": False,
}
ALL_SEVEN = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def shape_of(**changes: Any) -> ModelShape:
    return read_model_shape({**LLAMA2_7B, **changes})


def test_the_published_size_of_llama_2_7b() -> None:
    # Touvron et al., 2023; the released checkpoint holds 6,738,415,616 parameters.
    assert shape_of().num_parameters == 6_738_415_616


def test_the_published_size_of_a_mixture_of_experts() -> None:
    # Mixtral 8x7B: 46,702,792,704 parameters, 8 key heads for 32 query heads.
    shape = shape_of(
        model_type="mixtral", num_key_value_heads=8, intermediate_size=14336, num_local_experts=8
    )
    assert shape.num_parameters == 46_702_792_704


def test_the_lora_of_the_guide_counted_exactly() -> None:
    # MISSION B2: 39,976,960 for 4096 / 11008 / 32 layers / r 16 on all seven projections. By hand:
    # 32 x 16 x (4 x 8192 + 3 x 15104) = 512 x 78080.
    assert shape_of().count_lora(16, ALL_SEVEN) == 512 * 78_080 == 39_976_960


def test_two_thirds_of_the_layers_are_two_thirds_of_the_adapter() -> None:
    shape = shape_of(num_hidden_layers=30)
    assert shape.count_lora(16, ALL_SEVEN, num_layers=20) * 3 == shape.count_lora(16, ALL_SEVEN) * 2


def test_grouped_query_attention_narrows_keys_and_values() -> None:
    shapes = {
        item.name: (item.num_in, item.num_out) for item in shape_of(num_key_value_heads=8).list_linear()
    }
    assert shapes["q_proj"] == (4096, 4096)
    assert shapes["k_proj"] == shapes["v_proj"] == (4096, 1024)


def test_a_head_size_of_its_own_widens_the_projections() -> None:
    shapes = {item.name: (item.num_in, item.num_out) for item in shape_of(head_dim=256).list_linear()}
    assert (shapes["q_proj"], shapes["o_proj"]) == ((4096, 8192), (8192, 4096))


def test_tied_embeddings_are_counted_once() -> None:
    untied, tied = shape_of(), shape_of(tie_word_embeddings=True)
    assert untied.num_parameters - tied.num_parameters == 32000 * 4096


def test_layers_without_experts_are_dense() -> None:
    shape = shape_of(
        model_type="deepseek_v3",
        n_routed_experts=4,
        moe_intermediate_size=512,
        n_shared_experts=2,
        first_k_dense_replace=3,
        num_experts_per_tok=2,
    )
    assert (shape.num_sparse_layers, shape.num_experts, shape.shared_expert_size) == (29, 4, 1024)
    modules = sum(item.num_modules for item in shape.list_linear() if item.name == "up_proj")
    assert modules == 3 + 29 * 4 + 29


def test_the_inputs_of_a_block() -> None:
    # q, k, v, gate and up take the width, o the heads', down the inner width.
    assert shape_of().block_inputs == 6 * 4096 + 11_008
    assert shape_of(head_dim=256).block_inputs == 5 * 4096 + 8192 + 11_008
    sparse = shape_of(
        model_type="qwen2_moe",
        num_experts=60,
        num_experts_per_tok=4,
        moe_intermediate_size=1408,
        shared_expert_intermediate_size=5632,
        mlp_only_layers=list(range(8)),
    )
    # 8 of the 32 blocks are dense; in the others a token passes 4 experts and the shared one.
    dense, experts = 2 * 4096 + 11_008, 4 * (2 * 4096 + 1408) + 2 * 4096 + 5632
    assert sparse.block_inputs == 4 * 4096 + dense / 4 + experts * 3 / 4


def test_the_text_part_of_a_composed_model_counts() -> None:
    assert read_model_shape({"model_type": "llava", "text_config": LLAMA2_7B}) == shape_of()


def test_every_missing_key_is_named() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        read_model_shape({"model_type": "bert", "hidden_size": "wide", "num_hidden_layers": True})
    assert caught.value.code == "model-shape-unknown"
    assert {fault.where for fault in caught.value.faults} == {
        "hidden_size",
        "num_attention_heads",
        "num_hidden_layers",
        "vocab_size",
        "intermediate_size",
    }


def test_an_unknown_target_module_is_refused() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        shape_of().count_lora(8, ("q_proj", "W_pack"))
    assert caught.value.code == "target-module-unknown"


def test_sizes_that_no_model_has_are_refused_at_once() -> None:
    # A billion blocks would be counted one by one, and such a product does not fit a float.
    with pytest.raises(ConfigInvalid) as caught:
        shape_of(num_hidden_layers=10**9, hidden_size=10**200, num_experts=10**6, vocab_size=None)
    assert {fault.where: fault.code for fault in caught.value.faults} == {
        "hidden_size": "model-key-too-large",
        "num_hidden_layers": "model-key-too-large",
        "vocab_size": "model-key-missing",
        "num_experts": "model-key-too-large",
    }


def test_more_heads_than_width_need_a_size_of_their_own() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        shape_of(hidden_size=16)
    assert [fault.where for fault in caught.value.faults] == ["head_dim"]


KEYS = (
    *("hidden_size", "num_attention_heads", "num_hidden_layers", "vocab_size", "intermediate_size"),
    *("num_experts", "moe_intermediate_size", "n_shared_experts", "first_k_dense_replace", "head_dim"),
    *("mlp_only_layers", "decoder_sparse_step", "num_key_value_heads", "model_type", "text_config"),
    *("tie_word_embeddings", "attention_bias", "shared_expert_intermediate_size", "num_experts_per_tok"),
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.integers(0, 64),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(-5, 50) | st.text(max_size=2), max_size=5),
    st.dictionaries(st.sampled_from(KEYS), st.integers(0, 64), max_size=5),
)


@given(st.dictionaries(st.sampled_from(KEYS), VALUES))
def test_any_configuration_is_counted_or_refused(changes: dict[str, Any]) -> None:
    try:
        shape = shape_of(**changes)
    except ConfigInvalid as error:
        assert error.faults
    else:
        assert 0 < float(shape.num_parameters) < float("inf")
