import json
from pathlib import Path
from typing import Any

import pytest

from training.engine.data.intake.formats.hf_folder import find_saved_shards, find_split
from training.engine.data.intake.rows import FileRefused


def save(
    folder: Path, *names: str, state: dict[str, Any] | None = None, info: dict[str, Any] | None = None
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"")
    listed = {"_data_files": [{"filename": name} for name in names], "_split": None}
    (folder / "state.json").write_text(json.dumps(listed if state is None else state))
    if info is not None:
        (folder / "dataset_info.json").write_text(json.dumps(info))


def test_shards_in_the_order_of_the_state(tmp_path: Path) -> None:
    features = {"text": {"dtype": "string", "_type": "Value"}}
    save(tmp_path, "b.arrow", "a.arrow", info={"features": features})
    (tmp_path / "cache-1.arrow").write_bytes(b"")
    shards = find_saved_shards(tmp_path)
    assert shards is not None
    assert [(shard.name, shard.split, shard.features) for shard in shards] == [
        ("b.arrow", None, features),
        ("a.arrow", None, features),
    ]


def test_splits_of_a_saved_dictionary(tmp_path: Path) -> None:
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "测试"]}')
    save(tmp_path / "train", "data.arrow")
    save(tmp_path / "测试", "data.arrow")
    shards = find_saved_shards(tmp_path)
    assert shards is not None
    assert [(shard.name, shard.split) for shard in shards] == [
        ("train/data.arrow", "train"),
        ("测试/data.arrow", "测试"),
    ]


def test_other_folders_are_no_saved_datasets(tmp_path: Path) -> None:
    assert find_saved_shards(tmp_path) is None


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"_data_files": []},
        {"_data_files": [{"filename": "../a.arrow"}]},
        {"_data_files": [{"filename": "/etc/passwd"}]},
        {"_data_files": [{"filename": "missing.arrow"}]},
        {"_data_files": [{"filename": 3}]},
        {"_data_files": [{"filename": "a.arrow"}], "_indices_data_files": [{"filename": "i.arrow"}]},
    ],
)
def test_odd_states_are_refused(tmp_path: Path, state: dict[str, Any]) -> None:
    (tmp_path.parent / "a.arrow").write_bytes(b"")
    save(tmp_path, state=state)
    (tmp_path / "a.arrow").write_bytes(b"")
    with pytest.raises(FileRefused) as caught:
        find_saved_shards(tmp_path)
    assert caught.value.fault.code == "saved-dataset-broken"


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"splits": "train"}', '{"splits": ["../x"]}', '{"splits": ["gone"]}']
)
def test_odd_dictionaries_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "dataset_dict.json").write_text(content)
    with pytest.raises(FileRefused) as caught:
        find_saved_shards(tmp_path)
    assert caught.value.fault.code == "saved-dataset-broken"


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("data/train-00000-of-00002.parquet", "train"),
        ("data/validation-00000-of-00001.parquet", "validation"),
        ("data/train_sft-00000-of-00001.parquet", "train"),
        ("data/zh_hard-00000-of-00001.parquet", "zh_hard"),
        ("test.jsonl", "test"),
        ("dev.csv", "validation"),
        ("my_train_file.csv", "train"),
        ("test/part-1.jsonl", "test"),
        ("train/test.jsonl", "test"),
        ("train_test.jsonl", None),
        ("latest.jsonl", None),
        ("tickets.jsonl", None),
    ],
)
def test_splits_in_names(name: str, split: str | None) -> None:
    assert find_split(name) == split
