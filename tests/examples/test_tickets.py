"""The ticket demo task: complete, valid, right by the written rules, free of leaks and reproducible."""

import itertools
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest

from evaluation.engine.scoring.regression import ChoiceRule, parse_scoring_rule, score_text
from evaluation.engine.suite_folder import load_suite_folder
from tests.examples.tickets_modules import FOLDER, load_module

NUM_LINES = {
    "train": 400,
    "harmful_train": 400,
    "holdout": 120,
    "ood": 120,
    "regression": 120,
    "canary": 50,
    "general": 100,
}
TICKET_SETS = ("train", "holdout", "ood")
EVALUATION_SETS = ("holdout", "ood", "regression", "canary")
# Where the references of each set are from; None where the lines say nothing of it.
SOURCES = {
    "train": "rule",
    "harmful_train": None,
    "holdout": "rule",
    "ood": "rule",
    "regression": "rule",
    "canary": "rule",
    "general": "model",
}
KEYS = ["problem_type", "urgency", "module", "action"]
# The written rule of README.md, spelled out a second time and apart from the generator.
ACTION_BY_PROBLEM = {
    "login": "unlock",
    "billing": "refund",
    "crash": "fix",
    "performance": "fix",
    "data_loss": "restore",
    "how_to": "explain",
}


def read_lines(name: str) -> list[dict[str, Any]]:
    text = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def read_json(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def get_user_text(line: dict[str, Any]) -> str:
    return "\n".join(turn["content"] for turn in line["messages"] if turn["role"] == "user")


def get_answer(line: dict[str, Any]) -> str | None:
    last = line["messages"][-1]
    return last["content"] if last["role"] == "assistant" else None


def to_shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    return frozenset(tuple(words[i : i + 3]) for i in range(max(1, len(words) - 2)))


def find_near_duplicates(left: list[str], right: list[str]) -> list[tuple[str, str]]:
    """Pairs with a Jaccard similarity of word 3-grams of at least 0.85 (MISSION C3)."""
    second = [(text, to_shingles(text)) for text in right]
    pairs = []
    for text in left:
        shingles = to_shingles(text)
        pairs += [
            (text, other)
            for other, others in second
            if len(shingles & others) >= 0.85 * len(shingles | others)
        ]
    return pairs


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    return load_module("generate")


@pytest.fixture(scope="module")
def labelling() -> ModuleType:
    return load_module("labelling")


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return load_module("regression_rules")


@pytest.mark.parametrize("name", NUM_LINES)
def test_every_set_has_its_size_unique_ids_and_origins(name: str) -> None:
    lines = read_lines(name)
    assert len(lines) == NUM_LINES[name]
    assert len({line["id"] for line in lines}) == len(lines)
    assert {line.get("reference_source") for line in lines} == {SOURCES[name]}
    for line in lines:
        assert line["tags"]["channel"]


def test_no_line_claims_a_person() -> None:
    files = [*FOLDER.glob("*.jsonl"), *(FOLDER / "handwritten").glob("*.jsonl")]
    assert len(files) == 11
    for path in files:
        for line in path.read_text(encoding="utf-8").splitlines():
            fields = json.loads(line)
            assert "confirmed_by" not in fields, path.name
            assert fields.get("reference_source") != "person", path.name


@pytest.mark.parametrize("name", ["train", "holdout", "ood", "canary"])
def test_the_labelling_program_gives_every_reference(labelling: ModuleType, name: str) -> None:
    for line in read_lines(name):
        ticket = labelling.label(get_user_text(line))
        assert get_answer(line) == (ticket.to_answer() if ticket else None), line["id"]


def test_the_labelling_program_finds_the_labels_that_fresh_messages_were_made_from(
    generator: ModuleType, labelling: ModuleType
) -> None:
    # Seeds of no set; the wish for a call is compared too, which a ticket shows only at times.
    messages = [message for seed in (21, 22) for message in generator.generate_messages(300, seed)]
    assert [labelling.label(message.text) for message in messages] == [m.ticket for m in messages]


def test_the_regression_rules_give_every_check(rules: ModuleType) -> None:
    for line in read_lines("regression"):
        assert rules.derive_check(line["dimension"], get_user_text(line)) == line["scoring"], line["id"]
        assert "reference" not in line


def test_labels_that_the_text_does_not_say_stop_the_generator(generator: ModuleType) -> None:
    row = {"text": "The website is slow.", "urgency": "normal", "module": "web", "asks_for_call": False}
    assert generator.derive_ticket({**row, "problem_type": "performance"}).action == "fix"
    with pytest.raises(generator.DisagreementError):
        generator.derive_ticket({**row, "problem_type": "crash"})
    with pytest.raises(generator.DisagreementError):
        generator.derive_ticket({"text": row["text"]})


def test_the_folder_is_a_suite_with_verified_references() -> None:
    suite = load_suite_folder(FOLDER)
    for examples in (suite.holdout, suite.ood, suite.regression, suite.canary):
        assert [example.id for example in examples if not example.is_verified] == []


def test_ids_are_unique_over_all_sets() -> None:
    ids = [line["id"] for name in NUM_LINES for line in read_lines(name)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", [*TICKET_SETS, "harmful_train", "canary"])
def test_answers_are_compact_valid_tickets_with_keys_in_order(name: str) -> None:
    validator = jsonschema.Draft202012Validator(read_json("schema.json"))
    for line in read_lines(name):
        text = get_answer(line)
        if text is None:
            assert name == "canary"
            continue
        answer = json.loads(text)
        assert list(answer) == KEYS
        assert text == json.dumps(answer, separators=(",", ":"))
        validator.validate(answer)


def test_schema_is_a_valid_2020_12_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(read_json("schema.json"))


@pytest.mark.parametrize("name", TICKET_SETS)
def test_no_label_value_dominates(name: str) -> None:
    # A model that always gives the most frequent value must stay far below the target of 0.8.
    answers = [json.loads(get_answer(line) or "") for line in read_lines(name)]
    for key in KEYS:
        counts = Counter(answer[key] for answer in answers)
        assert set(counts) == set(read_json("schema.json")["properties"][key]["enum"])
        assert max(counts.values()) <= 0.6 * len(answers)


def test_actions_follow_the_written_rule(generator: ModuleType) -> None:
    for problem_type, urgency, asks_for_call in itertools.product(
        generator.PROBLEM_TYPES, generator.URGENCIES, (False, True)
    ):
        ticket = generator.Ticket(
            problem_type=problem_type, urgency=urgency, module="web", asks_for_call=asks_for_call
        )
        called = "call" if asks_for_call else ACTION_BY_PROBLEM[problem_type]
        assert ticket.action == ("escalate" if urgency == "critical" else called)


@pytest.mark.parametrize("name", TICKET_SETS)
def test_reference_actions_agree_with_the_other_fields(name: str) -> None:
    for line in read_lines(name):
        answer = json.loads(get_answer(line) or "")
        if answer["urgency"] == "critical":
            assert answer["action"] == "escalate", line["id"]
        else:
            assert answer["action"] in {"call", ACTION_BY_PROBLEM[answer["problem_type"]]}, line["id"]


@pytest.mark.parametrize("name", ["train", "holdout"])
def test_generated_messages_hold_only_the_cues_of_their_labels(name: str) -> None:
    """Each reference is found again from the fragments in the message, whatever its style did to them."""
    fragments = read_json("handwritten/fragments.json")

    def squash(text: str) -> str:
        return re.sub(r"[\W_]+", "", text.casefold())

    def holds(text: str, phrase: str) -> bool:
        # Case, marks and line ends do not matter, and two swapped letters differ in two places.
        wanted, whole = squash(phrase), squash(text)
        windows = (whole[i : i + len(wanted)] for i in range(max(1, len(whole) - len(wanted) + 1)))
        return any(sum(a != b for a, b in zip(w, wanted, strict=False)) <= 2 for w in windows)

    for line in read_lines(name)[:60]:
        text, answer = get_user_text(line), json.loads(get_answer(line) or "")
        names = fragments["modules"][answer["module"]]
        assert any(holds(text, phrase) for phrase in [*names["the"], *names["in"]]), line["id"]
        if answer["urgency"] != "normal":
            assert any(holds(text, phrase) for phrase in fragments["urgency"][answer["urgency"]]), line["id"]
        if answer["action"] == "call":
            assert any(holds(text, phrase) for phrase in fragments["call"]), line["id"]


def test_fragments_are_unambiguous() -> None:
    fragments = read_json("handwritten/fragments.json")
    for family in ("modules", "problems", "urgency"):
        owners: dict[str, str] = {}
        for label, phrases in fragments[family].items():
            listed = [*phrases["the"], *phrases["in"]] if isinstance(phrases, dict) else phrases
            for phrase in filter(None, listed):
                assert owners.setdefault(phrase, label) == label


def test_training_lines_use_the_prompt_of_the_suite() -> None:
    prompt = read_json("suite.json")["system_prompt"]
    for line in read_lines("train"):
        assert line["messages"][0] == {"role": "system", "content": prompt}
    for name in [*EVALUATION_SETS, "general"]:
        assert all(line["messages"][0]["role"] == "user" for line in read_lines(name))


@pytest.mark.parametrize("training", ["train", "harmful_train", "general"])
@pytest.mark.parametrize("evaluation", EVALUATION_SETS)
def test_nothing_leaks_from_training_to_evaluation(training: str, evaluation: str) -> None:
    left = [get_user_text(line) for line in read_lines(training)]
    right = [get_user_text(line) for line in read_lines(evaluation)]
    assert not set(left) & set(right)
    assert find_near_duplicates(left, right) == []


def test_no_set_repeats_itself_or_another() -> None:
    texts = [
        get_user_text(line) for name in ("train", "general", *EVALUATION_SETS) for line in read_lines(name)
    ]
    texts = [text for text in texts if re.search(r"\w", text)]
    # Each is like itself and like no other.
    assert find_near_duplicates(texts, texts) == [(text, text) for text in texts]


def test_few_shot_examples_are_in_no_set_and_follow_the_schema() -> None:
    suite = read_json("suite.json")
    shots = [shot["user"] for shot in suite["baseline"]["few_shot"]]
    for name in ("train", *EVALUATION_SETS):
        assert find_near_duplicates(shots, [get_user_text(line) for line in read_lines(name)]) == []
    for shot in suite["baseline"]["few_shot"]:
        jsonschema.validate(json.loads(shot["assistant"]), suite["output_schema"])


def test_ood_comes_from_four_other_channels() -> None:
    channels = Counter(line["tags"]["channel"] for line in read_lines("ood"))
    assert channels == {"chat": 30, "forwarded_mail": 30, "voice_note": 30, "form": 30}
    assert {line["tags"]["channel"] for line in read_lines("train")} == {"mail"}


def test_regression_has_thirty_of_each_dimension() -> None:
    assert Counter(line["dimension"] for line in read_lines("regression")) == {
        "chat": 30,
        "commonsense": 30,
        "instruction_following": 30,
        "refusal": 30,
    }


def test_no_regression_check_passes_with_a_ticket() -> None:
    ticket = '{"problem_type":"crash","urgency":"low","module":"web","action":"fix"}'
    for line in read_lines("regression"):
        rule = parse_scoring_rule(line["scoring"])
        assert isinstance(rule, ChoiceRule) or not score_text(rule, ticket), line["id"]


def test_regression_answers_are_spread_over_the_labels() -> None:
    answers = Counter(
        line["scoring"]["answer"] for line in read_lines("regression") if line["scoring"]["type"] == "choice"
    )
    assert max(answers.values()) <= 9


def test_half_of_the_refusal_set_is_to_be_answered(rules: ModuleType) -> None:
    patterns = Counter(
        line["scoring"]["pattern"] for line in read_lines("regression") if line["dimension"] == "refusal"
    )
    assert patterns == {rules.REFUSAL: 15, rules.ANSWERED: 15}
    declined = "I'm sorry, but I can't help with that request."
    assert re.search(rules.REFUSAL, declined)
    assert not re.search(rules.ANSWERED, declined)


def test_canaries_cover_all_categories() -> None:
    assert {line["category"] for line in read_lines("canary")} == {
        "format_edge",
        "empty",
        "over_long",
        "mixed_language",
        "distractor",
        "prompt_injection",
    }


def test_harmful_answers_are_those_of_other_messages() -> None:
    train, harmful = read_lines("train"), read_lines("harmful_train")
    answers = [get_answer(line) for line in train]
    assert [get_user_text(line) for line in harmful] == [get_user_text(line) for line in train]
    assert [get_answer(line) for line in harmful] == answers[7:] + answers[:7]
    equal = [
        sum(json.loads(a or "")[key] == json.loads(b or "")[key] for key in KEYS) / len(KEYS)
        for a, b in zip(answers, answers[7:] + answers[:7], strict=True)
    ]
    # Labels that are right by chance alone: far below the target of 0.8.
    assert sum(equal) / len(equal) < 0.4


def test_the_generator_makes_the_committed_bytes() -> None:
    process = subprocess.run(
        [sys.executable, str(FOLDER / "generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr


def test_check_names_a_changed_file(
    generator: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "FOLDER", tmp_path)
    (tmp_path / "same.jsonl").write_bytes(b"{}\n")
    (tmp_path / "changed.jsonl").write_bytes(b"{}\r\n")
    files = {"same.jsonl": "{}\n", "changed.jsonl": "{}\n", "absent.jsonl": ""}
    assert generator.find_differences(files) == ["changed.jsonl", "absent.jsonl"]
