import json
import os
from pathlib import Path

import pytest

from tests.training.engine.data.intake.builders import read_all
from training.engine.data.intake.settings import IntakeSettings
from training.engine.data.intake.understanding import understand

SHARED = Path(os.environ.get("ASSAY_SHARED", Path(__file__).parents[6] / "shared"))
FOLDER = SHARED / "data"

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"the shared data is not at {FOLDER} (set ASSAY_SHARED)"
)


# Numbers of lines as the data's README states them.
@pytest.mark.parametrize(
    ("name", "num_lines", "shape"),
    [
        ("snips/train.jsonl", 2000, "messages"),
        ("banking/ood.jsonl", 150, "messages"),
        ("instructions/general.jsonl", 494, "messages"),
        ("regression/regression.jsonl", 200, "messages"),
    ],
)
def test_ready_files_come_back_whole(name: str, num_lines: int, shape: str) -> None:
    examples, log = read_all(FOLDER / name)
    assert len(examples) == num_lines
    report = log.report()
    assert (report.num_bad, report.files[0].shape) == (0, shape)
    for example, line in zip(examples, (FOLDER / name).read_bytes().split(b"\n"), strict=False):
        made = example.to_json()
        del made["origin"]
        assert made == json.loads(line)


def test_chinese_texts_need_a_mapping_and_suggest_it() -> None:
    path = FOLDER / "zh" / "tickets_raw.jsonl"
    shape = understand(path, IntakeSettings()).to_json()["shape"]
    assert (shape["name"], shape["suggestion"]) == (None, {"input": "text", "answer": "label"})
    examples, _ = read_all(path, columns=shape["suggestion"])
    assert len(examples) == 974
    assert all(example.answer for example in examples)


def test_chinese_texts_in_gb18030(tmp_path: Path) -> None:
    source = FOLDER / "zh" / "tickets_raw.jsonl"
    path = tmp_path / "tickets_raw.jsonl"
    path.write_bytes(source.read_text(encoding="utf-8").encode("gb18030"))
    mapping = {"input": "text", "answer": "label"}
    examples, log = read_all(path, columns=mapping)
    assert log.report().files[0].encoding == "gb18030"
    assert examples == read_all(source, columns=mapping)[0]
