"""The report as JUnit XML, which CI systems show as tests: one test case per rule of the policy.

A failed rule is a failure, an inconclusive one an error (the rule could not be judged), a skipped one is
skipped. Schema: https://github.com/jenkinsci/xunit-plugin (junit-10.xsd), the subset that Jenkins, GitLab
and GitHub actions share.
"""

import xml.etree.ElementTree as ET
from datetime import datetime

from client.models import RuleResult, Submission
from client.reports.rows import (
    describe_examples,
    format_interval,
    format_number,
    headline,
    iterate_faults,
    summary_of,
)
from client.safe_text import xml_text

_OUTCOME_ELEMENTS = {"failed": "failure", "inconclusive": "error", "skipped": "skipped"}


def render_junit(submission: Submission) -> str:
    """Return the report as a JUnit document with an XML declaration."""
    suite = ET.Element("testsuite", name=xml_text(f"assay {submission.reference}"))
    if submission.created_at:
        suite.set("timestamp", xml_text(submission.created_at))
    _add_properties(suite, submission)
    class_name = f"assay.{submission.adapter}"
    if submission.decision is not None:
        for rule in submission.decision.rules:
            _add_rule(suite, class_name, rule)
    if submission.decision is None or submission.state in {"invalid", "failed", "cancelled"}:
        _add_no_verdict(suite, class_name, submission)
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for attribute, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(1 for case in cases if case.find(element) is not None)))
    suite.set("time", f"{_duration_seconds(submission):.1f}")
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _add_properties(suite: ET.Element, submission: Submission) -> None:
    properties = ET.SubElement(suite, "properties")
    values = {
        "submission": submission.id,
        "state": submission.state,
        "suite": submission.suite,
        "policy": submission.policy,
        "base_model": submission.base_model,
        "artifact": submission.artifact,
        "report": submission.report_url,
    }
    for name, value in values.items():
        if value is not None:
            ET.SubElement(properties, "property", name=name, value=xml_text(value))


def _add_rule(suite: ET.Element, class_name: str, rule: RuleResult) -> None:
    case = ET.SubElement(
        suite, "testcase", classname=xml_text(class_name), name=xml_text(rule.name), time="0"
    )
    element = (
        "error" if rule.outcome not in {"passed", *_OUTCOME_ELEMENTS} else _OUTCOME_ELEMENTS.get(rule.outcome)
    )
    if element is not None:
        outcome = ET.SubElement(case, element, message=xml_text(rule.explanation))
        if element != "skipped":
            outcome.set("type", f"rule-{xml_text(rule.outcome)}")
            outcome.text = xml_text(_describe(rule))
    ET.SubElement(case, "system-out").text = xml_text(_describe(rule))


def _describe(rule: RuleResult) -> str:
    lines = [_figures(rule)]
    lines += [f"{part.name}: {part.outcome}; {_figures(part)}" for part in rule.parts]
    examples = describe_examples(rule, limit=20)
    if examples:
        lines.append(f"examples: {examples}")
    return "\n".join(lines)


def _figures(rule: RuleResult) -> str:
    num_examples = "-" if rule.num_examples is None else rule.num_examples
    return (
        f"observed {format_number(rule.observed)}, 95 % interval {format_interval(rule.interval)}, "
        f"threshold {format_number(rule.threshold)}, n {num_examples}"
    )


def _add_no_verdict(suite: ET.Element, class_name: str, submission: Submission) -> None:
    """Add the case that says why there is no verdict: a fault of the adapter is a failure, else an error."""
    case = ET.SubElement(suite, "testcase", classname=xml_text(class_name), name="verdict", time="0")
    element = "failure" if submission.state == "invalid" else "error"
    outcome = ET.SubElement(case, element, message=xml_text(headline(submission)))
    outcome.set("type", f"submission-{xml_text(submission.state)}")
    lines = [
        f"{fault.severity} {fault.code}{f' ({fault.where})' if fault.where else ''}: {fault.message}"
        + (f" -> {fault.remedy}" if fault.remedy else "")
        for fault in iterate_faults(submission)
    ]
    outcome.text = xml_text("\n".join(lines) or summary_of(submission))


def _duration_seconds(submission: Submission) -> float:
    try:
        created = datetime.fromisoformat(submission.created_at or "")
        finished = datetime.fromisoformat(submission.finished_at or "")
        return max(0.0, (finished - created).total_seconds())
    except (ValueError, TypeError):
        return 0.0
