import pytest

from training.engine.errors import ChatTemplateUnsuitable, DataInvalid, TrainingEngineError, TrainingFailed
from training.engine.handbook.rows import HandbookRow
from training.engine.preflight.refusals import as_failed_check, is_refusal
from training.engine.preflight.report import CheckStatus


@pytest.mark.parametrize(
    ("error", "row"),
    [
        (ChatTemplateUnsuitable("end-token-missing", "m"), HandbookRow.NEVER_STOPS),
        (ChatTemplateUnsuitable("prompt-not-a-prefix", "m"), HandbookRow.WRONG_DATA),
        (ChatTemplateUnsuitable("double-bos", "m"), HandbookRow.WRONG_DATA),
        (DataInvalid("no-rows-left", "m"), HandbookRow.WRONG_DATA),
        (TrainingFailed("lora-without-gradient", "m"), HandbookRow.NOT_TRAINABLE),
        (TrainingFailed("packing-leaks", "m"), HandbookRow.PACKING_LEAK),
    ],
)
def test_a_refusal_is_a_failed_check_of_its_row(error: TrainingEngineError, row: HandbookRow) -> None:
    check = as_failed_check(error)
    assert (check.code, check.status, check.row, check.message) == (error.code, CheckStatus.FAILED, row, "m")


def test_other_errors_stay_errors() -> None:
    error = DataInvalid("jsonl-invalid", "m")
    assert not is_refusal(error)
    with pytest.raises(DataInvalid):
        as_failed_check(error)
