import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from registry.artifacts.base_model import read_base_model
from registry.artifacts.errors import BaseModelError
from tests.registry.artifacts.builders import (
    HIDDEN,
    VOCAB,
    llama_shapes,
    make_base,
    write_json,
    write_raw,
    write_tensors,
)


def codes_of(folder: Path) -> set[str]:
    with pytest.raises(BaseModelError) as caught:
        read_base_model(folder)
    return {finding.code for finding in caught.value.details}


def split(folder: Path, *, weight_map: dict[str, str] | None = None) -> Path:
    """Turn the single weights file into two shards with an index."""
    shapes = llama_shapes()
    names = list(shapes)
    shards = {"model-00001-of-00002.safetensors": names[:5], "model-00002-of-00002.safetensors": names[5:]}
    for shard, members in shards.items():
        write_tensors(folder / shard, {name: shapes[name] for name in members})
    (folder / "model.safetensors").unlink()
    right = {name: shard for shard, members in shards.items() for name in members}
    write_json(folder / "model.safetensors.index.json", {"weight_map": weight_map or right})
    return folder


def test_summary(tmp_path: Path) -> None:
    base = read_base_model(make_base(tmp_path / "base"))
    assert base.architecture == "LlamaForCausalLM"
    assert base.model_type == "llama"
    assert base.dtype == "bfloat16"
    assert base.is_tied
    assert (base.num_layers, base.hidden_size, base.vocab_size, base.max_position_embeddings) == (
        2,
        HIDDEN,
        VOCAB,
        64,
    )
    # By hand: embedding 32*8 = 256; a layer 64 + 32 + 32 + 64 + 3 * 128 + norm 8 = 584; final norm 8.
    assert base.num_parameters == 256 + 2 * 584 + 8
    assert base.tokenizer_files == ("tokenizer.json",)
    assert base.chat_template_sha256 == hashlib.sha256(b"{{ messages }}").hexdigest()
    assert base.tensors["model.norm.weight"].shard == "model.safetensors"
    assert base.findings == ()
    assert json.loads(json.dumps(base.to_json()))["num_tensors"] == len(base.tensors)


def test_shards(tmp_path: Path) -> None:
    base = read_base_model(split(make_base(tmp_path / "base")))
    assert base.shards == ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    assert set(base.tensors) == set(llama_shapes())
    assert base.tensors["model.norm.weight"].shard == base.shards[1]


@pytest.mark.parametrize(
    ("config", "is_head_stored", "is_tied"),
    [
        ({"tie_word_embeddings": True}, True, True),
        ({"tie_word_embeddings": False}, True, False),
        ({"tie_word_embeddings": None}, True, False),
        ({"tie_word_embeddings": None}, False, True),
        ({"tie_word_embeddings": None, "text_config": {"tie_word_embeddings": True}}, True, True),
    ],
)
def test_tied_embeddings(tmp_path: Path, config: dict[str, Any], is_head_stored: bool, is_tied: bool) -> None:
    folder = make_base(tmp_path / "base", llama_shapes(is_tied=not is_head_stored), **config)
    assert read_base_model(folder).is_tied is is_tied


@pytest.mark.parametrize(
    ("tokenizer_config", "jinja", "template"),
    [
        ({"chat_template": "a"}, None, "a"),
        ({"chat_template": "a"}, "b\r\n", "b\n"),  # transformers reads the file in text mode
        (
            {"chat_template": [{"name": "tool", "template": "t"}, {"name": "default", "template": "d"}]},
            None,
            "d",
        ),
        ({"chat_template": [{"name": "tool", "template": "t"}]}, None, None),
        ({"chat_template": 3}, None, None),
        ({}, None, None),
    ],
)
def test_chat_template(
    tmp_path: Path, tokenizer_config: Any, jinja: str | None, template: str | None
) -> None:
    folder = make_base(tmp_path / "base")
    write_json(folder / "tokenizer_config.json", tokenizer_config)
    if jinja is not None:
        (folder / "chat_template.jinja").write_bytes(jinja.encode())
    base = read_base_model(folder)
    assert base.chat_template_sha256 == (template and hashlib.sha256(template.encode()).hexdigest())
    assert [finding.code for finding in base.findings] == ([] if template else ["base-chat-template-missing"])


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({"auto_map": {"AutoModelForCausalLM": "modeling.X"}}, "base-remote-code"),
        ({"quantization_config": {"quant_method": "bitsandbytes"}}, "base-quantised"),
        ({"architectures": None}, "base-architecture-missing"),
    ],
)
def test_configs_that_are_refused(tmp_path: Path, config: dict[str, Any], code: str) -> None:
    assert codes_of(make_base(tmp_path / "base", **config)) == {code}


def test_tokenizer_code_is_refused(tmp_path: Path) -> None:
    folder = make_base(tmp_path / "base")
    write_json(
        folder / "tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["x.Y", None]}, "chat_template": "a"}
    )
    assert codes_of(folder) == {"base-remote-code"}


def test_all_faults_at_once(tmp_path: Path) -> None:
    folder = make_base(tmp_path / "base")
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / name).unlink()
    assert codes_of(folder) == {"base-config-missing", "base-tokenizer-missing", "base-weights-missing"}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("pytorch_model.bin", "base-weights-pickle"),
        ("model.pt", "base-weights-pickle"),
        ("model-q4.gguf", "base-weights-gguf"),
        ("training_args.bin", "base-weights-missing"),
    ],
)
def test_other_weights_are_refused_by_name(tmp_path: Path, name: str, code: str) -> None:
    folder = make_base(tmp_path / "base")
    (folder / "model.safetensors").rename(folder / name)
    assert codes_of(folder) == {code}


def test_pickles_beside_the_weights_are_a_warning(tmp_path: Path) -> None:
    folder = make_base(tmp_path / "base")
    (folder / "pytorch_model.bin").touch()
    assert [finding.code for finding in read_base_model(folder).findings] == ["base-pickle-beside"]


def test_adapter_files_beside_the_model_are_refused(tmp_path: Path) -> None:
    folder = make_base(tmp_path / "base")
    write_json(folder / "adapter_config.json", {})
    assert codes_of(folder) == {"base-has-adapter"}


def test_stray_weights_are_ambiguous(tmp_path: Path) -> None:
    folder = make_base(tmp_path / "base")
    write_tensors(folder / "consolidated.safetensors", {"x": ("F32", (1,))})
    assert codes_of(folder) == {"base-weights-ambiguous"}


def test_a_missing_shard(tmp_path: Path) -> None:
    folder = split(make_base(tmp_path / "base"))
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert codes_of(folder) == {"base-shard-missing"}


def test_a_damaged_shard(tmp_path: Path) -> None:
    folder = split(make_base(tmp_path / "base"))
    shard = folder / "model-00002-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])
    assert codes_of(folder) == {"safetensors-truncated"}


def test_a_tensor_in_two_shards(tmp_path: Path) -> None:
    folder = split(make_base(tmp_path / "base"))
    write_tensors(folder / "model-00002-of-00002.safetensors", llama_shapes())
    assert codes_of(folder) == {"base-tensor-duplicate"}


def test_an_index_that_does_not_fit(tmp_path: Path) -> None:
    weight_map = {name: "model-00001-of-00002.safetensors" for name in llama_shapes()}
    weight_map["model.norm.weight"] = "model-00002-of-00002.safetensors"
    folder = split(make_base(tmp_path / "base"), weight_map=weight_map)
    assert codes_of(folder) == {"base-index-mismatch"}


@pytest.mark.parametrize("weight_map", [["a"], {"a": "../../etc/passwd"}, {"a": 1}, {"a": ".."}])
def test_an_index_that_is_none(tmp_path: Path, weight_map: Any) -> None:
    assert "base-index-invalid" in codes_of(split(make_base(tmp_path / "base"), weight_map=weight_map))


def test_an_empty_weights_file(tmp_path: Path) -> None:
    folder = make_base(tmp_path / "base")
    write_raw(folder / "model.safetensors", {})
    assert codes_of(folder) == {"base-weights-empty"}


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "base-config-missing" in codes_of(tmp_path / "missing")
