# ruff: noqa: RUF001 (full-width characters are what is tested)
import pytest

from training.engine.data.cleaning.normalising.width import fold_width


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ＡＢＣ　１２３", "ABC 123"),
        ("５０％、Ｃ＋＋、３．５", "50%、C++、3.5"),
        ("ａ＠ｂ．ｃｏｍ", "a@b.com"),
        ("　　第一段\n　　第二段", "第一段\n第二段"),
        ("①㈱½ﬁｱ", "①㈱½ﬁｱ"),
        ("你好，世界！（北京－上海）", "你好，世界！（北京－上海）"),
        ("￥１００", "￥100"),
    ],
)
def test_fold_width(text: str, expected: str) -> None:
    assert fold_width(text) == expected
