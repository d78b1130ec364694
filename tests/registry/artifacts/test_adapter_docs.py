"""The table of docs/adapters.md says what the code says about each real folder of the shared cases."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from registry.artifacts.adapter_config import parse_adapter_config
from registry.artifacts.adapter_rules import check_config
from registry.artifacts.adapter_serving import list_obstacles
from registry.artifacts.findings import Finding, Severity

SHARED = Path(os.environ.get("ASSAY_SHARED", Path(__file__).parents[4] / "shared"))
CASES = sorted((SHARED / "cases" / "adapter_folders").glob("*.json"))
DOCUMENT = Path(__file__).parents[3] / "docs" / "adapters.md"
BEGIN, END = "<!-- real folders: begin -->", "<!-- real folders: end -->"


def render_row(case_id: str, raw: dict[str, Any]) -> str:
    """Return the table's row for one configuration, judged without weights and without a base model."""
    config = parse_adapter_config(raw)
    findings = check_config(config, is_adapter_form_needed=False)
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        answer = f"refused: {name_codes(errors)}"
    elif list_obstacles(config):
        answer = "merged form only"
    else:
        answer = "both forms"
    warnings = name_codes([finding for finding in findings if finding.severity is Severity.WARNING])
    remedy = (errors[0].remedy or "") if errors else ""
    return f"| {case_id} | {answer} | {warnings} | {remedy.replace('|', chr(92) + '|')} |"


def name_codes(findings: list[Finding]) -> str:
    return ", ".join(f"`{code}`" for code in sorted({finding.code for finding in findings}))


def render_table() -> str:
    rows = []
    for path in CASES:
        case = json.loads(path.read_text(encoding="utf-8"))
        rows.append(render_row(path.stem, case["adapter_config"]))
    return "\n".join(["| folder | answer | warnings | what to do |", "|---|---|---|---|", *rows])


@pytest.mark.skipif(not CASES, reason="the shared cases are not there (set ASSAY_SHARED)")
def test_the_table_is_what_the_code_says() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    written = document.partition(BEGIN)[2].partition(END)[0].strip()
    assert len(CASES) == 35
    assert written == render_table()


def test_every_code_of_the_variants_is_in_the_document() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    for changes in (
        {"use_dora": True},
        {"bias": "all"},
        {"lora_bias": True},
        {"modules_to_save": ["norm"]},
        {"trainable_token_indices": [1]},
        {"target_parameters": ["experts.down_proj"]},
        {"target_modules": ["embed_tokens"]},
        {"layer_replication": [[0, 1]]},
        {"kasa_config": {"beta": 1}},
        {"enable_lora": [True]},
        {"alora_invocation_tokens": [1]},
        {"arrow_config": {"top_k": 1}},
        {"use_bdlora": {"nblocks": 2}},
        {"use_qalora": True},
        {"monteclora_config": {"num_samples": 1}},
        {"megatron_config": {"hidden_size": 8}},
        {"init_lora_weights": "pissa"},
        {"init_lora_weights": "olora"},
        {"init_lora_weights": "corda"},
        {"init_lora_weights": "loftq"},
        {"init_lora_weights": "lora_ga"},
    ):
        raw = {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "r": 4,
            "lora_alpha": 8,
            "target_modules": ["q_proj"],
        }
        findings = check_config(parse_adapter_config({**raw, **changes}))
        codes = {finding.code for finding in findings} - {"adapter-base-hint-missing"}
        assert codes
        assert all(f"`{code}`" in document for code in codes), (changes, codes)
