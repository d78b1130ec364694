import os
from pathlib import Path

import pytest

from registry.artifacts import adapter_folder
from registry.artifacts.adapter_folder import AdapterSelection, select_adapter_files
from registry.artifacts.errors import FolderError
from tests.registry.artifacts.builders import make_adapter, write_json

OWN_FILES = ["adapter_config.json", "adapter_model.safetensors"]


def paths(selection: AdapterSelection) -> list[str]:
    return [file.path for file in selection.files]


def codes(selection: AdapterSelection) -> set[str]:
    return {finding.code for finding in selection.findings if finding.severity != "info"}


def infos(selection: AdapterSelection) -> set[str]:
    return {finding.code for finding in selection.findings if finding.severity == "info"}


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")


def test_what_a_trainer_leaves_is_left_out(tmp_path: Path) -> None:
    root = make_adapter(tmp_path / "out")
    left = {
        "optimizer.pt": "optimizer state",
        "optimizer (8).pt": "optimizer state",
        "scheduler.pt": "learning-rate scheduler state",
        "scaler.pt": "gradient scaler state",
        "rng_state_0.pth": "random generator state",
        "training_args.bin": "pickled training arguments",
        "trainer_state.json": "training log",
        "model.zip": "archive",
        "nohup.out": "log",
        "train.py": "code, never run here",
        "handler.pyc": "code, never run here",
        "config.json": "full model configuration",
        "model-00001-of-00002.safetensors": "full model weights",
        "pytorch_model.bin.index.json": "full model weights",
        "data.csv": "not part of an adapter",
        ".gitignore": "hidden file",
    }
    touch(root, *left)
    touch(
        root,
        "runs/Jan02/events.out.tfevents.1",
        "wandb/x",
        "__pycache__/a.pyc",
        "src/a.py",
        "global_step10/x",
    )
    touch(
        root,
        "tokenizer.json",
        "chat_template.jinja",
        "additional_chat_templates/tool.jinja",
        "README.md",
        "LICENSE.txt",
    )
    make_adapter(root / "checkpoint-100")
    selection = select_adapter_files(root)
    assert selection.ok
    assert selection.adapter_root == root
    assert paths(selection) == sorted(
        [
            *OWN_FILES,
            "tokenizer.json",
            "chat_template.jinja",
            "additional_chat_templates/tool.jinja",
            "README.md",
            "LICENSE.txt",
        ]
    )
    assert dict(selection.left_out) == {
        **left,
        "runs/": "experiment log",
        "wandb/": "experiment log",
        "__pycache__/": "tool's own folder",
        "src/": "not part of the adapter",
        "global_step10/": "DeepSpeed state",
        "checkpoint-100/": "intermediate checkpoint",
    }
    assert codes(selection) == {"full-model-left-out"}
    assert infos(selection) >= {"files-left-out", "checkpoints-left-out"}
    assert selection.size_bytes == sum(file.source.stat().st_size for file in selection.files)


def test_pickle_and_safetensors(tmp_path: Path) -> None:
    root = make_adapter(tmp_path / "out")
    touch(root, "adapter_model.bin")
    selection = select_adapter_files(root)
    assert selection.ok
    assert paths(selection) == OWN_FILES
    assert "weights-pickle-ignored" in infos(selection)


def test_pickle_alone_is_refused(tmp_path: Path) -> None:
    root = make_adapter(tmp_path / "out")
    (root / "adapter_model.safetensors").rename(root / "adapter_model.bin")
    selection = select_adapter_files(root)
    assert not selection.ok
    assert codes(selection) == {"weights-pickle-only"}
    assert paths(selection) == ["adapter_config.json"]


def test_several_adapters_ask_which(tmp_path: Path) -> None:
    root = tmp_path / "out"
    make_adapter(root)
    make_adapter(root / "run7")
    make_adapter(root / "nested" / "run10")
    make_adapter(root / "run7" / "checkpoint-5")
    selection = select_adapter_files(root)
    assert codes(selection) == {"adapter-ambiguous"}
    assert selection.candidates == (".", "nested/run10", "run7")
    assert selection.files == ()
    assert selection.adapter_root is None
    assert select_adapter_files(root, path="run7").adapter_root == root / "run7"
    assert select_adapter_files(root, path=".").adapter_root == root
    assert select_adapter_files(root, path="run7/checkpoint-5").ok


def test_an_adapter_in_a_subfolder_is_found(tmp_path: Path) -> None:
    make_adapter(tmp_path / "out" / "final")
    make_adapter(tmp_path / "out" / "checkpoint-5")
    selection = select_adapter_files(tmp_path / "out")
    assert selection.ok
    assert selection.adapter_root == tmp_path / "out" / "final"
    assert "adapter-in-subfolder" in infos(selection)


def test_only_checkpoints(tmp_path: Path) -> None:
    make_adapter(tmp_path / "out" / "checkpoint-5")
    assert select_adapter_files(tmp_path / "out").ok
    make_adapter(tmp_path / "out" / "checkpoint-10")
    selection = select_adapter_files(tmp_path / "out")
    assert codes(selection) == {"adapter-ambiguous"}
    assert selection.candidates == ("checkpoint-10", "checkpoint-5")


@pytest.mark.parametrize("path", ["missing", "../other", "/etc", "link"])
def test_paths_that_name_no_adapter(tmp_path: Path, path: str) -> None:
    root = make_adapter(tmp_path / "out")
    make_adapter(tmp_path / "other")
    (root / "link").symlink_to(tmp_path / "other")
    selection = select_adapter_files(root, path=path)
    assert codes(selection) == {"adapter-path-missing" if path == "missing" else "adapter-path-outside"}
    assert selection.files == ()


def test_links_that_leave_the_folder(tmp_path: Path) -> None:
    root = make_adapter(tmp_path / "out")
    outside = tmp_path / "blob"
    (root / "adapter_model.safetensors").rename(outside)
    (root / "adapter_model.safetensors").symlink_to(outside)
    (root / "notes.txt").symlink_to("/etc/passwd")  # is left out anyway
    selection = select_adapter_files(root)
    assert codes(selection) == {"symlink-outside"}
    assert paths(selection) == ["adapter_config.json"]


def test_links_inside_the_folder_are_followed(tmp_path: Path) -> None:
    root = make_adapter(tmp_path / "out")
    (root / "adapter_model.safetensors").rename(root / "weights.real")
    (root / "adapter_model.safetensors").symlink_to("weights.real")
    selection = select_adapter_files(root)
    assert selection.ok
    assert selection.files[1].size_bytes == (root / "weights.real").stat().st_size


def test_a_folder_that_links_to_itself(tmp_path: Path) -> None:
    root = make_adapter(tmp_path / "out")
    (root / "loop").symlink_to(root)
    (root / "dangling").symlink_to("nowhere")
    assert select_adapter_files(root).ok


def test_a_pipe_among_the_files(tmp_path: Path) -> None:
    root = make_adapter(tmp_path / "out")
    os.mkfifo(root / "tokenizer.json")
    assert codes(select_adapter_files(root)) == {"file-not-regular"}


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["config.json", "model-00001-of-00002.safetensors"], "full-model-not-adapter"),
        (["pytorch_model.bin"], "full-model-not-adapter"),
        (["x.txt"], "adapter-config-missing"),
        ([], "adapter-config-missing"),
        (["wandb/adapter_config.json"], "adapter-config-missing"),
    ],
)
def test_no_adapter(tmp_path: Path, names: list[str], code: str) -> None:
    touch(tmp_path, *names)
    assert codes(select_adapter_files(tmp_path)) == {code}


def test_foreign_adapters_are_named(tmp_path: Path) -> None:
    write_json(tmp_path / "adapter_config.json", {"lora_parameters": {"rank": 8}})
    touch(tmp_path, "adapters.safetensors")
    assert codes(select_adapter_files(tmp_path)) == {"adapter-mlx"}


def test_an_unreadable_configuration(tmp_path: Path) -> None:
    root = make_adapter(tmp_path / "out")
    (root / "adapter_config.json").write_text("{")
    assert codes(select_adapter_files(root)) == {"adapter-config-unreadable"}


def test_sharded_and_missing_weights(tmp_path: Path) -> None:
    root = make_adapter(tmp_path / "out")
    (root / "adapter_model.safetensors").unlink()
    assert codes(select_adapter_files(root)) == {"weights-missing"}
    touch(root, "adapter_model-00001-of-00002.safetensors")
    assert codes(select_adapter_files(root)) == {"weights-sharded"}


def test_a_huge_tree_is_not_walked_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter_folder, "MAX_FOLDER_ENTRIES", 5)
    touch(tmp_path, *(f"f{index}" for index in range(6)))
    with pytest.raises(FolderError) as caught:
        select_adapter_files(tmp_path)
    assert caught.value.code == "folder-too-large"


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(FolderError):
        select_adapter_files(tmp_path / "missing")
