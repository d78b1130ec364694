import io

from rich.console import Console

from client.cli.console import Output
from client.cli.display import BarDisplay, LineDisplay
from client.models import JobProgress


def make_output(*, is_live: bool) -> tuple[Output, io.StringIO]:
    stream = io.StringIO()
    console = Console(file=stream, width=200, force_terminal=is_live, markup=False, emoji=False)
    return Output(out=console, err=console, is_live=is_live), stream


def job(fraction: float, message: str = "m", state: str = "running", kind: str = "merge") -> JobProgress:
    return JobProgress(id="1", kind=kind, state=state, fraction=fraction, message=message)


def test_lines_are_dated_and_come_only_when_something_is_new() -> None:
    output, stream = make_output(is_live=False)
    display = LineDisplay(output)
    for fraction in (0.0, 0.01, 0.09, 0.1, 0.15, 0.9):
        display.show_job("checked", job(fraction))
    display.show_job("merged", None)
    display.show_job("merged", None)
    lines = stream.getvalue().splitlines()
    texts = [line.split(" ", 1)[1] for line in lines]
    assert texts == [
        "checked: merge running 0 % m",
        "checked: merge running 10 % m",
        "checked: merge running 90 % m",
        "merged",
    ]
    assert all(line[10] == "T" and line[19] == "Z" for line in lines)


def test_transfer_lines_come_every_ten_seconds() -> None:
    now_seconds = 0.0
    output, stream = make_output(is_live=False)
    display = LineDisplay(output, clock=lambda: now_seconds)
    display.start("uploading", 4096)
    for _ in range(4):
        now_seconds += 6
        display.advance(1024)
    texts = [line.split(" ", 1)[1] for line in stream.getvalue().splitlines()]
    assert texts == [
        "uploading 4.0 KiB",
        "uploading: 2.0 KiB of 4.0 KiB",
        "uploading: 4.0 KiB of 4.0 KiB",
    ]


def test_bars_show_foreign_text_without_obeying_it() -> None:
    output, stream = make_output(is_live=True)
    with BarDisplay(output) as display:
        display.start("uploading", 10)
        display.advance(10)
        display.show_job("checked", job(0.5, message="[red]\x1b]0;x\x07", kind="merge[/]"))
        display.show_job("passed", None)
        display.note("a note\x07")
    text = stream.getvalue()
    assert "merge[/]" in text
    assert "\x07" not in text
    assert "a note\\x07" in text
    assert "10 B of 10 B" in text
