import io
from collections.abc import Callable
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.intake.encodings import TextEncoding, classify_line, detect_encoding, doubt_chinese
from training.engine.data.intake.rows import FileRefused, RowFault

CHINESE = "您好\uff0c请问我的订单什么时候发货\uff1f我想申请退款\uff0c谢谢。"
KOREAN = "안녕하세요 주문한 상품이 아직 도착하지 않았습니다 확인 부탁드립니다 감사합니다 환불을 요청합니다"
JAPANESE = "お世話になっております。注文した商品がまだ届いておりません。至急確認してください。"


def opener(data: bytes) -> Callable[[], BinaryIO]:
    return lambda: io.BytesIO(data)


def detect(data: bytes, stated: str | None = None) -> TextEncoding:
    return detect_encoding(opener(data), stated=stated, max_line_bytes=1000)


def refused(data: bytes) -> FileRefused:
    with pytest.raises(FileRefused) as caught:
        detect(data)
    return caught.value


def encode_lines(*lines: tuple[str, str]) -> bytes:
    return b"".join(f"{text}\n".encode(name) for text, name in lines)


@pytest.mark.parametrize(
    ("data", "name", "confidence", "num_bom_bytes"),
    [
        (b"", "utf-8", "sure", 0),
        (b"plain", "utf-8", "sure", 0),
        (CHINESE.encode(), "utf-8", "sure", 0),
        (b"\xef\xbb\xbf" + CHINESE.encode(), "utf-8", "sure", 3),
        (("\ufeff" + CHINESE).encode("utf-16-le"), "utf-16-le", "sure", 2),
        (("\ufeff" + CHINESE).encode("utf-16-be"), "utf-16-be", "sure", 2),
        ('{"text": "hello"}\n'.encode("utf-16-le"), "utf-16-le", "likely", 0),
        (f'{{"text": "{CHINESE}"}}\n'.encode("utf-16-be"), "utf-16-be", "likely", 0),
        (CHINESE.encode("gb18030"), "gb18030", "likely", 0),
        ("退款".encode("gb18030"), "gb18030", "likely", 0),
        ("café naïve".encode(), "utf-8", "sure", 0),
    ],
)
def test_found_encodings(data: bytes, name: str, confidence: str, num_bom_bytes: int) -> None:
    found = detect(data)
    assert (found.name, found.confidence, found.num_bom_bytes) == (name, confidence, num_bom_bytes)
    assert not found.is_mixed


def test_chinese_far_into_an_ascii_file() -> None:
    data = b"a,b\n" * 600_000 + CHINESE.encode("gb18030")
    found = detect(data)
    assert found.name == "gb18030"
    assert "byte 2400000" in found.reason


@pytest.mark.parametrize(
    ("data", "code"),
    [
        # Latin-1 and Korean decode as GB18030, but do not read like Chinese.
        ("naïve maïs haïr Zaïre caïd\n".encode("latin-1") * 10, "encoding-unsure"),
        (JAPANESE.encode("euc-jp"), "encoding-unsure"),
        (KOREAN.encode("euc-kr"), "encoding-unsure"),
        ("訂單退款請求處理".encode("big5"), "encoding-unsure"),
        (b"caf\xe9 \xff\xff\n", "encoding-unknown"),
        ("a".encode("utf-32"), "encoding-unread"),
        (encode_lines((CHINESE, "utf-8"), (CHINESE, "gb18030")), "encoding-mixed"),
    ],
)
def test_refused_rather_than_guessed(data: bytes, code: str) -> None:
    fault = refused(data).fault
    assert fault.code == code
    assert fault.remedy


def test_refusal_names_the_byte() -> None:
    assert "byte 4)" in refused("订单".encode()[:3] + b"a\xff\xff").fault.message


def test_a_few_lines_of_another_encoding_are_bad_lines() -> None:
    data = encode_lines(*[(CHINESE, "utf-8")] * 19, (CHINESE, "gb18030"))
    found = detect(data)
    assert (found.name, found.is_mixed, found.confidence) == ("utf-8", True, "likely")
    assert found.decode_line(CHINESE.encode(), 0) == CHINESE
    with pytest.raises(RowFault, match="the row is in gb18030") as caught:
        found.decode_line(CHINESE.encode("gb18030"), 100)
    assert caught.value.code == "mixed-encoding"
    # GB18030 for "thanks" is also UTF-8 for two Cyrillic letters.
    assert "谢谢".encode("gb18030").decode() == "лл"
    with pytest.raises(RowFault, match="could be UTF-8 or GB18030"):
        found.decode_line("谢谢".encode("gb18030"), 0)


def test_damaged_lines_do_not_make_a_file_unknown() -> None:
    found = detect(CHINESE.encode() + b"\n\xff\xff\n")
    assert (found.name, found.is_mixed) == ("utf-8", False)
    with pytest.raises(RowFault, match="byte 0xff at byte 76 of the file") as caught:
        found.decode_line(b"\xff\xff\n", 76)
    assert caught.value.code == "undecodable"


def test_utf8_lines_in_gb18030_are_never_read_as_it() -> None:
    encoding = TextEncoding(name="gb18030", confidence="stated", reason="")
    # Decodes without error, to other characters.
    assert "你好".encode().decode("gb18030") == "浣犲ソ"
    with pytest.raises(RowFault) as caught:
        encoding.decode_line("你好".encode(), 0)
    assert caught.value.code == "mixed-encoding"
    assert encoding.decode_line("谢谢".encode("gb18030"), 0) == "谢谢"


def test_what_is_stated_wins() -> None:
    assert detect(CHINESE.encode("gb18030"), "utf-8").name == "utf-8"
    assert detect("訂單".encode("big5"), "big5").decode_line("訂單".encode("big5"), 0) == "訂單"
    assert detect(b"\xef\xbb\xbfa", "utf-8").num_bom_bytes == 3
    assert detect(b"caf\xe9", "windows-1252").decode_line(b"caf\xe9", 0) == "café"


def test_zero_bytes_in_ascii_do_not_make_utf16() -> None:
    assert detect(b'{"a": "x\x00"}\n' * 20).name == "utf-8"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"a", "ascii"),
        ("好".encode(), "utf-8"),
        (CHINESE.encode("gb18030"), "gb18030"),
        ("谢谢".encode("gb18030"), "either"),
        (b"\xff", "neither"),
        # Cut off inside a character.
        ("好".encode()[:2] + b"\xff", "neither"),
    ],
)
def test_classes_of_lines(data: bytes, kind: str) -> None:
    assert classify_line(data) == kind


@given(st.text("的一是不了在人有我订单退款您好。", min_size=1, max_size=40))
def test_chinese_is_not_doubted(text: str) -> None:
    assert doubt_chinese(text) == ""


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30))
def test_every_utf8_text_is_utf8(text: str) -> None:
    data = text.encode()
    if not data.startswith((b"\xef\xbb\xbf",)):
        assert detect(data).name == "utf-8"
