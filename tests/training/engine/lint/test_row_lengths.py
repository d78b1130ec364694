from tests.fixtures.models import smollm2_tokenizer
from training.engine.chat import render_rows
from training.engine.config import TrainingConfig
from training.engine.data.examples import ChatMessage, Example
from training.engine.lint.row_lengths import measure_rows


def make_examples(answers: list[str]) -> list[Example]:
    return [
        Example(
            example_id=f"a-{index}",
            messages=(ChatMessage("user", "问题?"), ChatMessage("assistant", answer)),
        )
        for index, answer in enumerate(answers)
    ]


def test_lengths_are_those_of_the_trainer() -> None:
    examples = make_examples(["word " * n for n in range(1, 21)])
    config = TrainingConfig.from_json(
        {"training": {"max_length_tokens": 40}, "data": {"system_prompt": "Be brief."}}
    )
    tokenizer = smollm2_tokenizer()
    measured = measure_rows(examples, config, tokenizer=tokenizer)
    trained = render_rows(tokenizer, examples, system_prompt="Be brief.", max_length_tokens=40)
    lengths = measured.facts.lengths
    assert lengths is not None
    assert lengths.num_too_long == len(trained.dropped) > 0
    assert measured.facts.num_rows - lengths.num_too_long == len(trained.rows)
    whole = render_rows(tokenizer, examples, system_prompt="Be brief.", max_length_tokens=10_000).rows
    ordered = sorted(len(row.input_ids) for row in whole)
    # Nearest rank: the 19th of 20.
    assert (lengths.common_tokens, lengths.longest_tokens) == (ordered[18], ordered[19])


def test_examples_that_cannot_be_trained_on_are_apart() -> None:
    examples = make_examples(["fine", "bad <|im_end|> end"])
    measured = measure_rows(examples, TrainingConfig(), tokenizer=smollm2_tokenizer())
    assert measured.facts.num_rows == 1
    assert [item.example_id for item in measured.unusable] == ["a-1"]
