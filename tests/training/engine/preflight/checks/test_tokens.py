from dataclasses import replace

from tests.fixtures.models import smollm2_tokenizer
from tests.training.engine.preflight.views import FAILED, PASSED, SKIPPED, foreign
from training.engine.chat import IGNORED_LABEL
from training.engine.handbook.rows import HandbookRow
from training.engine.preflight.checks import tokens
from training.engine.preflight.token_rows import TokenRow


def put_before(row: TokenRow, *ids: int) -> TokenRow:
    return TokenRow(row.example_id, (*ids, *row.input_ids), (*[IGNORED_LABEL] * len(ids), *row.labels))


def test_two_bos_tokens_are_found() -> None:
    bos = smollm2_tokenizer().bos_token_id  # with which SmolLM2's rows begin
    assert tokens.check_double_bos(foreign()).status is PASSED
    result = tokens.check_double_bos(foreign(lambda row: put_before(row, bos)))
    assert (result.status, result.row) == (FAILED, HandbookRow.WRONG_DATA)


def test_unknown_tokens_are_found() -> None:
    unknown = smollm2_tokenizer().unk_token_id
    assert tokens.check_unknown_tokens(foreign()).status is PASSED
    assert tokens.check_unknown_tokens(foreign(lambda row: put_before(row, unknown))).status is FAILED


def test_ids_beyond_the_vocabulary_are_found() -> None:
    view = foreign()
    highest = max(max(row.input_ids) for row in view.rows)
    assert tokens.check_vocabulary(view).status is SKIPPED
    assert tokens.check_vocabulary(replace(view, vocabulary_size=highest + 1)).status is PASSED
    result = tokens.check_vocabulary(replace(view, vocabulary_size=highest))
    assert (result.status, result.row) == (FAILED, HandbookRow.WRONG_DATA)
