"""Checks of the token ids: the tokenizer belongs to the base, and nothing is doubled or unknown."""

from training.engine.handbook.rows import HandbookRow
from training.engine.preflight.data_view import DataView
from training.engine.preflight.outcomes import failed, judge_part, passed, skipped
from training.engine.preflight.report import CheckResult


def check_double_bos(view: DataView) -> CheckResult:
    """No row begins with two BOS tokens (template and tokenizer each added one)."""
    bos = view.tokenizer.bos_token_id
    if bos is None:
        return passed("single-bos", "the tokenizer has no BOS token")
    wrong = [row.example_id for row in view.rows if row.input_ids[:2] == (bos, bos)]
    if not wrong:
        return passed("single-bos", f"none of {len(view.rows)} rows begins with two BOS tokens")
    return failed(
        "single-bos",
        HandbookRow.WRONG_DATA,
        f"{len(wrong)} of {len(view.rows)} rows begin with two BOS tokens, which no prompt of serving does",
        remedy="Tokenise the rendered text with add_special_tokens=False, or take the BOS token out of the "
        "template.",
        example_ids=wrong,
    )


def check_unknown_tokens(view: DataView) -> CheckResult:
    """The tokenizer knows every character."""
    unknown = getattr(view.tokenizer, "unk_token_id", None)
    if unknown is None or unknown in view.stop_ids:
        return passed("no-unknown-tokens", "the tokenizer can write every character")
    wrong = [row.example_id for row in view.rows if unknown in row.input_ids]
    if not wrong:
        return passed("no-unknown-tokens", f"the tokenizer knows all characters of {len(view.rows)} rows")
    return judge_part(
        "no-unknown-tokens",
        HandbookRow.WRONG_DATA,
        f"{len(wrong)} of {len(view.rows)} rows hold characters that the tokenizer does not know: the model "
        "sees one and the same token for all of them",
        remedy="Normalise these characters, or take a base whose tokenizer knows the language.",
        example_ids=wrong,
        num_all=len(view.rows),
    )


def check_vocabulary(view: DataView) -> CheckResult:
    """Every id has a row in the base's embedding."""
    size = view.vocabulary_size
    if size is None:
        return skipped("ids-in-vocabulary", "the size of the base's vocabulary is not known")
    wrong = [row.example_id for row in view.rows if not 0 <= min(row.input_ids) <= max(row.input_ids) < size]
    if not wrong:
        return passed("ids-in-vocabulary", f"all ids are below the vocabulary's size of {size}")
    return failed(
        "ids-in-vocabulary",
        HandbookRow.WRONG_DATA,
        f"{len(wrong)} of {len(view.rows)} rows hold ids beyond the base's {size}: they were made with the "
        "tokenizer of another model",
        remedy="Tokenise with the base's own tokenizer.",
        example_ids=wrong,
    )
