"""Nested settings as rows."""

from training.admin.following import flat_rows


def test_nested_settings_become_rows() -> None:
    settings = {
        "a": {"b": 1, "c": None, "empty": {}},
        "names": ["x", "y"],
        "parts": [{"name": "输入", "n": 2}],
        "is_on": True,
    }
    assert list(flat_rows(settings)) == [
        ("a.b", "1"),
        ("a.c", "-"),
        ("names", "x, y"),
        ("parts", '{"name": "输入", "n": 2}'),
        ("is_on", "True"),
    ]
