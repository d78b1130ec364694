"""All checks of the data, in the order in which they are told."""

from collections.abc import Callable
from typing import Final

from training.engine.preflight.checks import leaks, masks, system_prompts, templates, texts, tokens
from training.engine.preflight.data_view import DataView
from training.engine.preflight.report import CheckResult

DATA_CHECKS: Final[tuple[Callable[[DataView], CheckResult], ...]] = (
    masks.check_trained_tokens,
    masks.check_labels,
    masks.check_prompt_untrained,
    masks.check_trained_text,
    masks.check_prompts,
    masks.check_mask_holes,
    masks.check_end_token,
    masks.check_padding_mask,
    masks.check_stop_token,
    masks.check_length_limit,
    tokens.check_double_bos,
    tokens.check_unknown_tokens,
    tokens.check_vocabulary,
    templates.check_template,
    templates.check_marks_in_texts,
    system_prompts.check_system_prompt,
    texts.check_empty_answers,
    texts.check_answers_whole,
    texts.check_answers_finished,
    texts.check_equal_answers,
    texts.check_copies,
    texts.check_alignment,
    texts.check_dropped,
    leaks.check_leaks,
)
