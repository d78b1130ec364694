from registry.artifacts.findings import Finding, has_errors, shown, shown_list


def test_only_errors_refuse() -> None:
    assert not has_errors([Finding.info("a", "b"), Finding.warning("a", "b")])
    assert has_errors([Finding.info("a", "b"), Finding.error("a", "b")])


def test_json_form() -> None:
    finding = Finding.error("a-code", "message", where="x", remedy="y")
    assert finding.to_json() == {
        "code": "a-code",
        "severity": "error",
        "message": "message",
        "where": "x",
        "remedy": "y",
    }


def test_shown_escapes_and_cuts() -> None:
    assert shown("a\x1b\u202e\ud800é") == "a\\x1b\\u202e\\ud800é"
    assert len(shown("x" * 10_000)) == 120


def test_shown_list_counts_the_rest() -> None:
    assert shown_list("abcdefg") == "a, b, c, d, e and 2 more"
    assert shown_list("ab") == "a, b"
