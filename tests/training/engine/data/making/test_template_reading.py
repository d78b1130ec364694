import json
from pathlib import Path
from typing import Any

import pytest

from tests.training.engine.data.making.sets import SMALL, load, small
from training.engine.data.making import template_reading
from training.engine.data.making.template_reading import read_template_file, read_template_set
from training.engine.data.making.template_set import LabelRule, NoiseSettings
from training.engine.data.making.template_settings import TemplateSettings
from training.engine.data.making.templates import make_from_templates
from training.engine.errors import DataInvalid


def codes_of(raw: Any) -> list[tuple[str, str]]:
    with pytest.raises(DataInvalid) as caught:
        read_template_set(raw)
    assert caught.value.code == "template-set-invalid"
    return [(fault.code, fault.where) for fault in caught.value.faults]


def test_reads_the_hand_written_sets() -> None:
    tickets = load("tickets")
    assert tickets.answer_fields == ("problem", "urgency", "module", "action")
    assert tickets.domains() == {
        "problem": ('"login"', '"crash"', '"billing"'),
        "module": ('"mobile"', '"web"'),
        "urgency": ('"high"', '"normal"'),
        "wants_call": ("true", "false"),
    }
    assert tickets.noise == NoiseSettings(
        lower_case_fraction=0.2, drop_punctuation_fraction=0.15, swap_letters_fraction=0.2
    )
    assert tickets.rules[3] == LabelRule(
        when={"problem": ('"billing"',)}, then={"action": '"refund"'}, where="rules.3"
    )
    assert load("contracts").system_prompt is None


def test_the_digest_tells_documents_apart_even_by_order() -> None:
    turned = small(slots=dict(reversed(SMALL["slots"].items())))
    digests = {read_template_set(raw).sha256 for raw in (SMALL, small(name="other"), turned)}
    assert len(digests) == 3
    assert read_template_set(small()).sha256 == read_template_set(SMALL).sha256


def test_all_faults_of_the_form_at_once() -> None:
    raw = {
        "name": "x" * 65,
        "answer": [],
        "slots": {
            "Bad": {"values": ["a"]},
            "empty": {"values": []},
            "none": {"label": "l"},
            "odd": {
                "values": [3, {"labels": {}}, {"text": "{", "keep": "x", "labels": {"l": [1]}}, "a", "a"]
            },
        },
        "templates": [
            {"text": "{odd}"},
            {"id": "t", "text": "{odd}", "txet": ""},
            {"id": "t", "text": "{odd}"},
            5,
        ],
        "rules": [{"when": {"l": []}, "then": {}}],
        "exclude": [{}, {"l": {}}],
        "noise": {"loud": 1},
        "output_schema": {"type": "x"},
        "extra": 1,
    }
    found = codes_of(raw)
    assert found[:21] == [
        ("invalid-value", "template_set.name"),
        ("invalid-value", "template_set.answer"),
        ("unknown-key", "template_set.extra"),
        ("unknown-key", "template_set.noise.loud"),
        ("slot-name-invalid", "slots.Bad"),
        ("invalid-value", "slots.empty.values"),
        ("missing-key", "slots.none.values"),
        ("wrong-type", "slots.odd.values.0"),
        ("missing-key", "slots.odd.values.1.text"),
        ("invalid-value", "slots.odd.values.2.keep"),
        ("label-value-invalid", "slots.odd.values.2.labels.l"),
        ("stray-brace", "slots.odd.values.2"),
        ("duplicate-value", "slots.odd.values.4"),
        ("id-missing", "templates.0.id"),
        ("unknown-key", "templates.1.txet"),
        ("duplicate-id", "templates.2.id"),
        ("wrong-type", "templates.3"),
        ("rule-without-effect", "rules.0.then"),
        ("label-value-invalid", "rules.0.when.l"),
        ("wrong-type", "exclude.0"),
        ("label-value-invalid", "exclude.1.l"),
    ]
    assert ("schema-invalid", "template_set.output_schema") in found


def test_missing_sections() -> None:
    assert [code for code in codes_of({}) if code[0] == "missing-key"] == [
        ("missing-key", f"template_set.{name}") for name in ("name", "answer", "slots", "templates")
    ]
    assert codes_of([])[0] == ("wrong-type", "template_set")
    assert codes_of({"name": "\ud800"})[0][0] == "not-strict-json"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    for content in (b"\xff", b'{"name": "a", "name": "b"}', b"{"):
        path.write_bytes(content)
        with pytest.raises(DataInvalid) as caught:
            read_template_file(path)
        assert caught.value.code == "template-file-unreadable"


def test_hostile_names_are_shown_escaped() -> None:
    with pytest.raises(DataInvalid) as caught:
        read_template_set(small(templates=[{"id": "\x1b[31m", "text": "{start}"}] * 2))
    assert all("\x1b" not in fault.message + fault.where for fault in caught.value.faults)


def test_the_set_in_the_documentation_is_a_set() -> None:
    document = (template_reading.__doc__ or "").split("::\n")[1].split("\n- A slot's value")[0]
    template_set = read_template_set(json.loads(document))
    result = make_from_templates(template_set, TemplateSettings(num_examples=8))
    # 2 problems x 2 modules x 2 urgencies, less crash on the web with its 2 urgencies.
    assert result.report.num_combinations == 6
