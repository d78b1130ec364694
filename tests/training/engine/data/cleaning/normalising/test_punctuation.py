# ruff: noqa: RUF001 (full-width marks are what is tested)
import pytest

from training.engine.data.cleaning.normalising.punctuation import unify_punctuation


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("你好,世界!", "你好，世界！"),
        ("你好, world", "你好，world"),
        ("你好 ,世界", "你好，世界"),
        ("我用iPhone,很好!", "我用iPhone，很好！"),
        ("时间:10:30,地点:北京", "时间：10:30，地点：北京"),
        ("价格1,234元,很贵", "价格1,234元，很贵"),
        ("比分3：2,很好", "比分3:2，很好"),
        ("太好了!!!", "太好了！！！"),
        ("史蒂夫.乔布斯很厉害.", "史蒂夫.乔布斯很厉害。"),
        ("酒店(北京店)在哪?", "酒店（北京店）在哪？"),
        ("苹果 (Apple) 公司", "苹果（Apple）公司"),
        ("烤全鱼(鹅掌香锅）", "烤全鱼（鹅掌香锅）"),
        ("如下:(1)首先;(2)其次", "如下：（1）首先；（2）其次"),
        ('他说:"你好",然后走了', '他说："你好"，然后走了'),
        ("**标题**:内容", "**标题**：内容"),
        ("こんにちは,世界.", "こんにちは,世界。"),
        ("Hello，world！How are you？", "Hello, world! How are you?"),
        ("at 10：30（local time）sharp", "at 10:30 (local time) sharp"),
    ],
)
def test_marks_take_the_width_of_their_context(text: str, expected: str) -> None:
    assert unify_punctuation(text) == expected
    assert unify_punctuation(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Translate: hello, world",
        "The word 你好, meaning hello, is common.",
        "有A,B,C三种",
        "一.背景",
        "1.苹果",
        "报告.pdf",
        "好的...",
        "好的:)",
        "好的(^_^)",
        "函数f(x)很好",
        '{"姓名":"张三","年龄":30',
        "SELECT 姓名, 年龄 FROM 表",
        "x = f(你, 好)",
        "姓名,年龄,城市\n张三,30,北京",
        "[文字](地址)你好",
        "인사, 안녕하세요",
        "1，234",
        "，，，",
        "“你好”——《书》、【注】",
    ],
)
def test_what_the_context_does_not_settle_stays(text: str) -> None:
    assert unify_punctuation(text) == text


def test_english_with_a_chinese_object_keeps_its_own_marks() -> None:
    assert unify_punctuation("Translate to English: 你好,世界") == "Translate to English: 你好，世界"
