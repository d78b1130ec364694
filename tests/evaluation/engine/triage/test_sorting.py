"""Planted outputs, English and Chinese: each must be sorted into the kind that was planted."""
# ruff: noqa: RUF001 - Chinese texts have full-width marks

import json
from typing import Any

import pytest

from evaluation.engine.triage.kinds import AMBIGUOUS, FailureKind, Outcome
from evaluation.engine.triage.sorting import chance_of_guessing
from tests.evaluation.engine.triage.planted import Line, judge_all, line, sort_one

FORMAT, STYLE = FailureKind.FORMAT.value, FailureKind.STYLE.value
FACT, CALCULATION = FailureKind.UNKNOWN_FACT.value, FailureKind.CALCULATION.value
CAPABILITY = FailureKind.MISSING_CAPABILITY.value

TICKET = line(
    1,
    "The invoice page crashes when I click Pay. Module billing, urgency high.",
    {"module": "billing", "urgency": "high"},
)
TICKET_ZH = line(1, "支付页面点击后崩溃，模块是账单，级别紧急。", {"模块": "账单", "级别": "紧急"})
ORDER = line(1, "We order 12 boxes at 8.50 euros each. What is the total?", {"total": 102.0})
ORDER_ZH = line(1, "买了3箱，每箱45元，再减20元优惠，一共多少钱？", {"合计": 115})
REPLY = line(
    1,
    "My parcel 4411 has not arrived.",
    "We are sorry for the delay. Parcel 4411 arrives on Friday.",
    checks={"required_points": ["4411", "Friday"]},
)
REPLY_ZH = line(
    1,
    "订单8812还没有到。",
    "您好，订单8812将于周五送达，请您耐心等候。",
    checks={"required_points": ["8812", "周五"]},
)
LONG_REPLY = (
    "Parcel 4411 arrives on Friday. It left our warehouse last night and was sorted this morning; a driver "
    "who knows your street brings it before noon, rings twice, and leaves a card in case that nobody opens."
)


def codes(sorting: Any) -> set[str]:
    return {signal.code for signal in sorting.signals}


@pytest.mark.parametrize(
    ("sample", "output"),
    [
        (TICKET, '{"urgency": "high", "module": "billing"}'),
        (TICKET, '```json\n{"module": "Billing ", "urgency": "HIGH"}\n```'),  # one outer fence is strict
        (TICKET_ZH, '{"模块": "账单", "级别": "紧急"}'),
        (ORDER, '{"total": 102}'),
        (REPLY, "Parcel 4411 comes on Friday; we are sorry."),
        (REPLY_ZH, "您好，您的订单8812周五送达。"),
        (line(1, "Is the sky green?", "no"), "No."),
    ],
)
def test_right_answers_pass(sample: Line, output: str) -> None:
    judged, sorting = sort_one(sample, output)
    assert (judged.outcome, judged.score, sorting.kind) == (Outcome.PASSED, 1.0, None)


@pytest.mark.parametrize(
    ("sample", "output", "code"),
    [
        (TICKET, 'Sure! {"module": "billing", "urgency": "high"}', "not-strict-json"),
        (TICKET, '{"module": "billing", "urgency": "high"} Hope this helps.', "not-strict-json"),
        (TICKET, 'Here:\n```json\n{"module": "billing", "urgency": "high"}\n```', "not-strict-json"),
        (TICKET, "{'module': 'billing', 'urgency': 'high'}", "not-strict-json"),
        (TICKET, "The module is billing and the urgency is high.", "no-json"),
        (TICKET, '{"area": "billing", "priority": "high"}', "keys-differ"),
        (ORDER, '{"total": "102.00"}', "value-form"),
        (TICKET_ZH, '好的，结果如下：{"模块": "账单", "级别": "紧急"}', "not-strict-json"),
        (TICKET_ZH, "模块：账单\n级别：紧急", "no-json"),
        (TICKET_ZH, '{"module": "账单", "level": "紧急"}', "keys-differ"),
        (
            line(1, "Urgent, normal or inquiry? The server burns.", "urgent"),
            "Category: urgent",
            "extra-prose",
        ),
        (line(1, "紧急、一般还是咨询？服务器着火了。", "紧急"), "这张工单属于：紧急", "extra-prose"),
    ],
)
def test_format(sample: Line, output: str, code: str) -> None:
    judged, sorting = sort_one(sample, output)
    assert (judged.outcome, sorting.kind) == (Outcome.FAILED, FORMAT), sorting
    assert sorting.signals[0].code == code and sorting.confidence >= 0.8


def test_a_schema_violation_names_the_path() -> None:
    schema = {"type": "object", "properties": {"total": {"type": "number"}}, "additionalProperties": False}
    judged, sorting = sort_one(ORDER, '{"total": 102, "note": "x"}', schema=schema)
    assert (judged.outcome, sorting.kind) == (Outcome.FAILED, FORMAT)
    assert sorting.signals[0].code == "schema-violation" and sorting.signals[0].evidence["paths"] == ["$"]


@pytest.mark.parametrize(
    ("sample", "output", "code"),
    [
        (REPLY, "Sure, here is a reply: parcel 4411 arrives on Friday.", "preamble"),
        (REPLY, "Parcel 4411 arrives on Friday. Let me know if you need anything.", "closing-phrase"),
        (REPLY, "# Your parcel\n- **4411**\n- arrives on Friday", "markdown"),
        (REPLY, "Parcel 4411 arrives on Friday \U0001f389", "emoji"),
        (REPLY, LONG_REPLY, "much-longer"),
        (REPLY_ZH, "好的，以下是回复：订单8812周五送达，请您留意。", "preamble"),
        (REPLY_ZH, "你的订单8812周五就到了，你等着吧。", "form-of-address"),
        (REPLY_ZH, "您的订单8812周五送达。希望以上信息对您有所帮助。", "closing-phrase"),
    ],
)
def test_style(sample: Line, output: str, code: str) -> None:
    judged, sorting = sort_one(sample, output)
    assert (judged.outcome, sorting.kind) == (Outcome.FAILED, STYLE), sorting
    assert code in codes(sorting)


def test_checks_of_style() -> None:
    checks = {"required_points": ["Friday"], "forbidden_phrases": ["guarantee"], "max_characters": 60}
    sample = line(1, "When?", "On Friday.", checks=checks)
    _, sorting = sort_one(sample, "We guarantee that it comes on Friday, and not a day later than that.")
    assert sorting.kind == STYLE and codes(sorting) == {"forbidden-phrase", "too-long"}


@pytest.mark.parametrize(
    ("sample", "output", "relation"),
    [
        (ORDER, '{"total": 96}', "12 x 8.5 = 102"),
        (ORDER_ZH, '{"合计": 135}', "3 x 45 - 20 = 115"),
        (line(1, "The contract of 2024-03-01 runs for 90 days.", {"end": "2024-05-30"}),
         # 30 days are left of March, then 30 of April and 30 of May
         '{"end": "2024-06-01"}', "2024-03-01 + 90 days = 2024-05-30"),
        (line(1, "From 2024-02-10 to 2024-03-10. How many days?", "29"), "28",
         "days from 2024-02-10 to 2024-03-10 = 29"),  # 2024 is a leap year
        (line(1, "合同从2024年2月10日到2024年3月10日，一共多少天？", "29天"), "28天", "= 29"),
        (line(1, "Net 400, VAT 19 %. What is the gross amount?", {"gross": 476}), '{"gross": 470}', "= 476"),
        (line(1, "Meeting from 9:15 to 11:00. How many minutes?", "105"), "95", "from 09:15 to 11:00 = 105"),
    ],
)  # fmt: skip
def test_calculation(sample: Line, output: str, relation: str) -> None:
    judged, sorting = sort_one(sample, output)
    assert (judged.outcome, sorting.kind) == (Outcome.FAILED, CALCULATION), sorting
    assert relation in sorting.signals[0].message


@pytest.mark.parametrize(
    ("sample", "output"),
    [
        (line(1, "Who is the head of the Lyon branch?", "Claire Dubois"), "Jean Martin"),
        (line(1, "What does the X200 pump cost?", {"price": 399}), '{"price": 250}'),
        (line(1, "Who leads the Lyon branch?", {"name": "Claire Dubois"}), '{"name": "Jean Martin"}'),
        (line(1, "Who leads the Lyon branch?", "Claire Dubois"), "I don't know who that is."),
        (line(1, "杭州分公司的负责人是谁？", "王建国"), "李明"),
        (line(1, "X200水泵的保修期是多久？", {"保修": "18个月"}), '{"保修": "12个月"}'),
        (line(1, "杭州分公司的负责人是谁？", "王建国"), "抱歉，我不知道。"),
    ],
)
def test_unknown_fact(sample: Line, output: str) -> None:
    judged, sorting = sort_one(sample, output)
    assert (judged.outcome, sorting.kind) == (Outcome.FAILED, FACT), sorting


@pytest.mark.parametrize(
    ("sample", "output", "code"),
    [
        (TICKET, "", "empty"),
        (TICKET, "billing billing billing " * 20, "repetition"),
        (TICKET, "I'm sorry, but I can't help with that.", "refusal"),
        (TICKET_ZH, "抱歉，我无法处理这个请求。", "refusal"),
        (REPLY_ZH, "Your order arrives soon, please wait a little longer.", "wrong-language"),
        (REPLY, "您的包裹很快就会送达，请耐心等候。", "wrong-language"),
        (REPLY, "Photosynthesis turns light into sugar inside green plants.", "off-topic"),
    ],
)
def test_missing_capability(sample: Line, output: str, code: str) -> None:
    judged, sorting = sort_one(sample, output)
    assert (judged.outcome, sorting.kind) == (Outcome.FAILED, CAPABILITY), sorting
    assert code in codes(sorting)


def labelled(number: int, label: str) -> Line:
    return line(number, f"Ticket number {number} of the day.", {"urgency": label})


def test_labels_at_chance_level_lean_to_a_missing_capability_unless_their_form_is_right() -> None:
    lines = [labelled(number, ("high", "low")[number % 2]) for number in range(12)]
    results = judge_all(lines, ['{"urgency": "high"}'] * 12, prompt="urgency is high or low")
    right_form = [sorting for judged, sorting in results if judged.outcome is Outcome.FAILED]
    # Perhaps the base cannot, perhaps nobody showed it the habits of the house: a person decides.
    assert {(s.kind, s.leaning) for s in right_form} == {(AMBIGUOUS, FailureKind.MISSING_CAPABILITY)}
    assert codes(right_form[0]) == {"labels-guessed", "labels-not-taught"}
    results = judge_all(lines, ['So: {"urgency": "high"}'] * 12, prompt="urgency is high or low")
    wrong = [sorting for judged, sorting in results if judged.outcome is Outcome.FAILED]
    # Always "high": 6 of 12 are right, and guessing reaches that in 61 % of all cases.
    assert chance_of_guessing(6, 12, 2) == pytest.approx(0.6128, abs=1e-4)
    assert len(wrong) == 12 and {s.kind for s in wrong[1::2]} == {CAPABILITY}
    assert "guessing does as well" in wrong[1].signals[0].message


def test_a_label_missed_now_and_then_is_for_a_person() -> None:
    lines = [labelled(number, ("high", "low")[number % 2]) for number in range(12)]
    outputs = [json.dumps({"urgency": ("high", "low")[number % 2]}) for number in range(11)]
    results = judge_all(lines, [*outputs, '{"urgency": "high"}'], prompt="urgency is high or low")
    sorting = results[-1][1]
    assert (sorting.kind, sorting.leaning) == (AMBIGUOUS, FailureKind.MISSING_CAPABILITY)


def test_rules_that_disagree_are_ambiguous() -> None:
    sample = line(
        1, "We buy 12 boxes at 8.50. Who delivers, and what is the total?", {"by": "Hansen", "total": 102}
    )
    _, sorting = sort_one(sample, '{"by": "Meyer", "total": 100}')
    assert sorting.kind == AMBIGUOUS
    assert {signal.kind.value for signal in sorting.signals} == {FACT, CALCULATION}


def test_a_fact_among_faults_of_form_is_still_a_fact() -> None:
    sample = line(1, "Who leads the Lyon branch?", {"name": "Claire Dubois"})
    _, sorting = sort_one(sample, 'Here you go: {"name": "Jean Martin"}')
    assert sorting.kind == FACT and "not-strict-json" in codes(sorting)


def test_an_answer_that_names_two_labels_has_not_chosen() -> None:
    lines = [line(n, f"Ticket {n}.", ("urgent", "normal")[n % 2]) for n in range(10)]
    judged, sorting = judge_all(lines, ["urgent or normal", *["normal"] * 9], prompt="urgent, normal")[0]
    assert judged.outcome is Outcome.FAILED and not judged.is_content_right
    assert sorting.kind != FORMAT


def test_an_open_reference_without_a_rule_is_unjudged() -> None:
    reference = "The pump stands still because the filter is full of sand; clean it and start again slowly."
    judged, sorting = sort_one(line(1, "Why?", reference), "Sand blocks it.")
    assert (judged.outcome, judged.score, sorting.kind) == (Outcome.UNJUDGED, None, None)
    assert sort_one(line(1, "Why?", reference), reference.upper())[0].outcome is Outcome.PASSED


def test_more_items_than_the_reference_are_a_failure() -> None:
    sample = line(1, "Which colours? red, blue", {"colours": ["red", "blue"]})
    judged, _ = sort_one(sample, '{"colours": ["red", "blue", "green"]}')
    assert judged.outcome is Outcome.FAILED
    assert judged.wrong[0].path == "colours (number of items)"


@pytest.mark.parametrize("output", ["\x00\ud800", "{" * 500, "\u202e" * 50, "9" * 5000, "```\n" * 300])
@pytest.mark.parametrize("sample", [TICKET, ORDER, REPLY, TICKET_ZH])
def test_hostile_outputs_are_sorted_and_storable(sample: Line, output: str) -> None:
    judged, sorting = sort_one(sample, output)
    assert judged.outcome is Outcome.FAILED and sorting.kind is not None
    assert all("\u202e" not in signal.message and "\x00" not in signal.message for signal in sorting.signals)
