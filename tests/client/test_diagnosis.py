from datetime import UTC, datetime
from pathlib import Path

import pytest

from client.credentials import LoginFile
from client.diagnosis import Condition, check_clock, check_login_file, check_version

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("date", "condition", "words"),
    [
        ("Fri, 02 Jan 2026 03:04:35 GMT", Condition.GOOD, "30 s behind"),
        ("Fri, 02 Jan 2026 03:02:05 GMT", Condition.WRONG, "120 s ahead of"),
        ("Fri, 02 Jan 2026 03:09:05 GMT", Condition.WRONG, "300 s behind"),
        ("nonsense", Condition.UNKNOWN, "no Date header"),
    ],
)
def test_the_clock_is_compared_with_the_date_header(date: str, condition: Condition, words: str) -> None:
    check = check_clock({"Date": date}, now=NOW)
    assert check.condition is condition
    assert words in check.detail


@pytest.mark.parametrize(
    ("headers", "condition"),
    [
        ({"Assay-Version": "0.1.99"}, Condition.GOOD),
        ({"Assay-Version": "0.2.0"}, Condition.WRONG),
        ({"Assay-Version": "1.1.0"}, Condition.WRONG),
        ({}, Condition.UNKNOWN),
    ],
)
def test_versions_must_agree_in_major_and_minor(headers: dict[str, str], condition: Condition) -> None:
    assert check_version(headers).condition is condition


def test_an_open_login_file_is_a_fault_with_its_remedy(tmp_path: Path) -> None:
    login_file = LoginFile(tmp_path / "credentials.json")
    assert check_login_file(login_file).condition is Condition.GOOD
    login_file.save("http://a", "x")
    login_file.path.chmod(0o640)
    check = check_login_file(login_file)
    assert check.condition is Condition.WRONG
    assert check.remedy == f"chmod 600 '{login_file.path}'"
