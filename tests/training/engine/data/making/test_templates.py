import json
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.artifacts.dataset_lines import check_dataset_lines
from tests.training.engine.data.making.scripted import ScriptedGenerator
from tests.training.engine.data.making.sets import FOLDER, SMALL, load, small
from training.engine.data.making.structured_answers import AnswerSchema
from training.engine.data.making.template_reading import read_template_set
from training.engine.data.making.template_settings import TemplateSettings
from training.engine.data.making.templates import TemplateResult, make_from_templates
from training.engine.data.shingles import jaccard, make_shingles, normalise

TICKETS = load("tickets")


def make(num: int, **more: object) -> TemplateResult:
    return make_from_templates(TICKETS, TemplateSettings(num_examples=num, **more))  # type: ignore[arg-type]


def test_an_example_by_hand() -> None:
    raw = small()
    for slot in raw["slots"].values():
        del slot["values"][1:]
    (example,) = make_from_templates(
        read_template_set({**raw, "system_prompt": "Sort it."}), TemplateSettings(num_examples=1, seed=4)
    ).examples
    assert example.to_json() == {
        "id": "small-00001",
        "messages": [
            {"role": "system", "content": "Sort it."},
            {"role": "user", "content": "Yesterday we bought a red ball. It is huge."},
            {"role": "assistant", "content": '{"colour":"red","size":2}'},
        ],
        "reference_source": "rule",
        "origin": {
            "kind": "template",
            "template": "one",
            "template_set": "small",
            "template_set_sha256": read_template_set({**raw, "system_prompt": "Sort it."}).sha256,
            "seed": 4,
        },
    }


def test_labels_follow_from_the_text() -> None:
    for example in make(60, seed=9).examples:
        text, answer = example.input_text.casefold(), json.loads(example.answer or "")
        assert list(answer) == ["problem", "urgency", "module", "action"]
        assert (answer["module"] == "mobile") == ("mobile app" in text or "android app" in text)
        hurried = any(word in text for word in ("urgent", "whole team is blocked", "before noon"))
        assert (answer["urgency"] == "high") == hurried
        calls = "call me back" in text or "telephone" in text
        by_problem = {"login": "unlock", "billing": "refund", "crash": "fix"}[answer["problem"]]
        assert answer["action"] == ("escalate" if hurried else "call" if calls else by_problem)


def test_chinese_set_extracts_what_stands_there() -> None:
    result = make_from_templates(load("contracts"), TemplateSettings(num_examples=40, seed=2))
    for example in result.examples:
        answer = json.loads(example.answer or "")
        assert answer["甲方"] in example.input_text and answer["金额"] in example.input_text
        assert answer["币种"] == "CNY"
    # 4 companies x 5 amounts, 40 examples: each pair twice.
    assert set(Counter(example.answer for example in result.examples).values()) == {2}


def test_shortage_is_reported() -> None:
    # Blue and size 1 can be said in three ways, by the three beginnings, and so each other pair; red has two
    # things. Six ways for red, three for blue, each with two sizes: 18 texts.
    result = make_from_templates(read_template_set(SMALL), TemplateSettings(num_examples=100, seed=1))
    report = result.report
    assert (report.num_requested, report.num_examples, report.num_missing) == (100, 18, 82)
    assert sum(item["num_missing"] for item in report.missing) == 82
    assert report.missing[0] == {"labels": '{"colour":"\\"blue\\"","size":"2"}', "num_missing": 22}
    assert report.labels["colour"] == {'"blue"': 6, '"red"': 12}
    assert json.loads(json.dumps(report.to_json())) == report.to_json()


def test_paraphrased_examples_say_so() -> None:
    generator = ScriptedGenerator(lambda prompt: "so it was told: " + prompt[1].content, name="rewriter")
    configured = TemplateSettings(
        num_examples=20, seed=1, paraphrase_fraction=0.5, paraphrase_max_similarity=1.0
    )
    result = make_from_templates(TICKETS, configured, paraphraser=generator)
    assert len(generator.calls[0]) == 10
    reworded = [example for example in result.examples if "paraphrased_by" in example.origin]
    report = result.report.paraphrase
    assert report is not None
    assert len(reworded) == report.num_accepted
    for example in reworded:
        assert example.origin["paraphrased_by"] == {"model": "rewriter"}
        assert example.input_text.startswith("so it was told: ")
        assert example.fields["reference_source"] == "rule"


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40), st.integers(0, 1000), st.sampled_from([0.4, 0.85]))
def test_every_example_is_valid_and_differs(num: int, seed: int, similarity: float) -> None:
    result = make(num, seed=seed, max_similarity=similarity)
    report = result.report
    assert report.num_examples + report.num_missing == report.num_requested == num
    assert report.num_examples == len(result.examples) == sum(report.templates.values())
    assert all(sum(values.values()) == report.num_examples for values in report.labels.values())
    summary = check_dataset_lines([example.to_line().encode() for example in result.examples], role="train")
    assert summary.faults == ()
    schema = AnswerSchema(json.loads((FOLDER / "tickets.json").read_text())["output_schema"])
    assert all(schema.find_fault(json.loads(example.answer or "")) == "" for example in result.examples)
    sets = [make_shingles(normalise(example.input_text)) for example in result.examples]
    assert all(jaccard(a, b) < similarity for i, a in enumerate(sets) for b in sets[:i])


@pytest.mark.timeout(60)
def test_the_same_bytes_in_another_process() -> None:
    program = (
        "from pathlib import Path\n"
        "from training.engine.data.making.template_reading import read_template_file\n"
        "from training.engine.data.making.template_settings import TemplateSettings\n"
        "from training.engine.data.making.templates import make_from_templates\n"
        f"made = make_from_templates(read_template_file(Path({str(FOLDER / 'tickets.json')!r})),"
        " TemplateSettings(num_examples=30, seed=5))\n"
        "print('\\n'.join(example.to_line() for example in made.examples))\n"
        "print(made.report)\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(FOLDER.parents[4])},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    here = make(30, seed=5)
    lines = "\n".join(example.to_line() for example in here.examples)
    assert outputs == {f"{lines}\n{here.report}\n".encode()}
