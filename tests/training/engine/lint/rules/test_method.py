from registry.artifacts.findings import Severity
from tests.training.engine.lint.plans import find, make_plan, severity_of


def test_full_fine_tuning_gives_no_adapter() -> None:
    assert severity_of(make_plan(method="full"), "full-gives-a-base-model") is Severity.INFO
    for method in ("lora", "qlora"):
        assert find(make_plan(method=method), "full-gives-a-base-model") is None


def test_qlora_is_for_exploring() -> None:
    # A plain LoRA on the 7B model takes about 19.4 GB.
    finding = find(make_plan(method="qlora", card_gb=24), "qlora-for-exploring")
    assert finding is not None
    assert finding.severity is Severity.WARNING
    assert "A plain LoRA needs 19.4 GB and fits the card's 24.0 GB." in finding.message
    assert severity_of(make_plan(method="qlora", card_gb=16), "qlora-for-exploring") is Severity.INFO
    assert severity_of(make_plan(method="qlora", card_gb=None), "qlora-for-exploring") is Severity.INFO
    assert severity_of(make_plan(method="qlora", shape=None), "qlora-for-exploring") is Severity.INFO
    assert find(make_plan(), "qlora-for-exploring") is None
