from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.cleaning.writing_systems import SCRIPTS, count_scripts, weigh_scripts


def test_counts_by_hand() -> None:
    assert count_scripts("iPhone很好, カメラも! Привет 안녕") == {
        "latin": 6,
        "han": 2,
        "kana": 4,
        "cyrillic": 6,
        "hangul": 2,
    }
    assert count_scripts("Ａé ქ 123 …") == {"latin": 2, "other": 1}
    # 2 Han of 3, 4 kana of 2, 6 Latin letters
    assert weigh_scripts("iPhone很好カメラも") == {"latin": 6, "han": 6, "kana": 8}


@given(st.text())
def test_names_are_known_and_counts_positive(text: str) -> None:
    counts = count_scripts(text)
    assert set(counts) <= set(SCRIPTS)
    assert all(number > 0 for number in counts.values())
