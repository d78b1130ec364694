import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.artifacts.paths import check_path, check_paths, is_safe_path


@pytest.mark.parametrize(
    "path",
    [
        "adapter_config.json",
        "checkpoint-39/model.safetensors",
        "optimizer (8).pt",
        "数据.jsonl",
        ".gitignore",
        "a/.b/c",
    ],
)
def test_usual_names_are_valid(path: str) -> None:
    assert check_path(path) == []


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("", "path-empty"),
        ("/etc/passwd", "path-absolute"),
        ("C:/Windows/x", "path-absolute"),
        ("../x", "path-traversal"),
        ("a/../../x", "path-traversal"),
        ("a/..", "path-traversal"),
        ("./a", "path-traversal"),
        ("..\\x", "path-backslash"),
        ("a//b", "path-empty-segment"),
        ("a/", "path-empty-segment"),
        ("a\x00b", "path-control-character"),
        ("a\nb", "path-control-character"),
        ("gpj\u202e.exe", "path-control-character"),  # shows as "gpjexe." reversed
        ("a\u200bb", "path-control-character"),
        ("a\u2028b", "path-control-character"),
        ("\udcff", "path-control-character"),  # a byte that is not UTF-8, as os.fsdecode gives it
        ("e\u0301", "path-not-normalised"),
        ("a" * 256, "path-too-long"),
        ("é" * 128, "path-segment-too-long"),  # 256 bytes in UTF-8
        ("a/b ", "path-edge-character"),
        ("a./b", "path-edge-character"),
        ("con", "path-reserved-name"),
        ("a/LPT1.txt", "path-reserved-name"),
    ],
)
def test_each_rule_refuses(path: str, code: str) -> None:
    assert code in {finding.code for finding in check_path(path)}
    assert not is_safe_path(path)


def test_all_faults_are_named_at_once() -> None:
    codes = {finding.code for finding in check_path("/../a\\b\x07//CON")}
    assert codes == {
        "path-absolute",
        "path-backslash",
        "path-control-character",
        "path-empty-segment",
        "path-traversal",
        "path-reserved-name",
    }


@pytest.mark.parametrize(
    ("paths", "code"),
    [
        (["a", "a"], "path-duplicate"),
        (["README.md", "readme.md"], "path-case-collision"),
        (["straße", "STRASSE"], "path-case-collision"),
        (["a", "a/b"], "path-file-and-folder"),
        (["x/y/z", "x"], "path-file-and-folder"),
    ],
)
def test_collisions_inside_one_artifact(paths: list[str], code: str) -> None:
    assert [finding.code for finding in check_paths(paths)] == [code]


def test_messages_do_not_carry_control_characters() -> None:
    for finding in check_path("a\x1b[31m\u202eb"):
        assert finding.where is not None
        assert finding.where.isprintable()


@given(st.text(max_size=40))
def test_a_valid_path_stays_inside_its_folder(path: str) -> None:
    if is_safe_path(path):
        segments = path.split("/")
        assert not path.startswith("/")
        assert not {"", ".", ".."} & set(segments)
        assert path.encode("utf-8").decode("utf-8") == path
