# ruff: noqa: RUF001 (full-width marks are what this is about)
"""Phrases that assistant models are known to add to their answers (MISSION C5, "de-flavouring").

The field guide names openings such as ``好的`` and summaries at the start. The disclaimers are those that
cleaned copies of public chat collections were filtered by; the rest is what assistants in both languages
write before and after the matter itself. No entry is wrong as such: how often it comes is what is judged.
"""

import re
from dataclasses import dataclass

_EDGE_CHARACTERS = 200
"""How far from the start or the end an opening or closing is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherPhrase:
    """One phrase.

    Attributes:
        name: As shown to people.
        pattern: Finds it in the part of the answer that ``place`` says.
        place: start, end or anywhere.
        is_disclaimer: Whether one occurrence is one too many: the model speaks of itself.
    """

    name: str
    pattern: re.Pattern[str]
    place: str
    is_disclaimer: bool = False

    def is_in(self, answer: str) -> bool:
        """Return whether the answer has the phrase at its place."""
        if self.place == "start":
            return self.pattern.match(answer[:_EDGE_CHARACTERS].lstrip()) is not None
        text = answer[-_EDGE_CHARACTERS:] if self.place == "end" else answer
        return self.pattern.search(text) is not None


def _make(place: str, name: str, pattern: str, *, is_disclaimer: bool = False) -> TeacherPhrase:
    return TeacherPhrase(
        name=name,
        pattern=re.compile(pattern, re.IGNORECASE),
        place=place,
        is_disclaimer=is_disclaimer,
    )


_COMMA = "[,!.\uff0c\uff01\u3002~]?\\s?"

TEACHER_PHRASES: tuple[TeacherPhrase, ...] = (
    _make(
        "anywhere",
        "As an AI language model",
        r"\bas an? (?:AI|artificial intelligence|(?:large )?language model)\b|\bI am an AI\b"
        r"|\bI'm (?:just )?an AI\b|\bmy (?:knowledge cutoff|training data)\b",
        is_disclaimer=True,
    ),
    _make(
        "anywhere",
        "作为一个人工智能语言模型",
        "作为(?:一个|一名|一款)?(?:AI|人工智能|(?:大型?)?语言模型)|我(?:只)?是(?:一个|一名|一款)?(?:AI|人工智能)",
        is_disclaimer=True,
    ),
    _make(
        "start",
        "Certainly! / Sure! / Of course!",
        r"(?:certainly|sure|of course|absolutely|great|got it)(?:[,!.]| thing)",
    ),
    _make("start", "Here is / Here's …", r"here(?:'s|\u2019s| is| are) (?:a|an|the|your|some|my)\b"),
    _make(
        "start",
        "Great question",
        r"(?:that's |that is |what )?(?:a )?(?:great|good|excellent|interesting) question",
    ),
    _make("start", "I'd be happy to help", r"I(?:'d|\u2019d| would) be (?:happy|glad|delighted) to"),
    _make("start", "Thank you for …", r"thank(?:s| you) for (?:your|the|reaching|sharing|asking)"),
    _make(
        "start",
        "I understand / I'm sorry to hear",
        r"I (?:completely )?understand (?:your|how|that)|I'm sorry to hear",
    ),
    _make("start", "Let's …", r"let(?:'s|\u2019s| us) (?:break|dive|explore|take a look|analy[sz]e|think)"),
    _make("end", "I hope this helps", r"\b(?:I )?hope (?:this|that|it) (?:was |is )?help(?:s|ed|ful)"),
    _make(
        "end", "Let me know if …", r"\blet me know if\b|\bfeel free to\b|\bplease (?:don't|do not) hesitate\b"
    ),
    _make(
        "end", "Is there anything else …", r"\banything else (?:I can|you)\b|\bhappy to help (?:with|further)"
    ),
    _make(
        "anywhere",
        "In conclusion / In summary / Overall,",
        r"(?:^|[.!?\n]\s{0,3})(?:in (?:conclusion|summary)|to (?:sum up|summarize)|overall),",
    ),
    _make(
        "anywhere",
        "It's important to note",
        r"\bit(?:'s|\u2019s| is) (?:important|worth|crucial|essential) (?:to (?:note|remember|mention)"
        r"|noting|mentioning)",
    ),
    _make(
        "anywhere",
        "delve / tapestry / testament to",
        r"\bdelv(?:e|es|ing) into\b|\brich tapestry\b|\ba testament to\b|\bever-evolving\b",
    ),
    _make(
        "start",
        "好的，… / 当然！",
        f"(?:好的|好嘞|没问题|当然可以|当然|可以的|明白了|收到|嗯){_COMMA}(?:我|以下|下面|这|让|为|根据|请|，|！|。|,|!)",
    ),
    _make("start", "以下是 / 下面是", "(?:以下|下面|这里)(?:是|为)"),
    _make(
        "start",
        "我来帮你… / 让我们…",
        "(?:我来|让我|让我们|我们来|我很(?:高兴|乐意))(?:帮|为|给|一起|来|看|分析|能)?",
    ),
    _make(
        "start",
        "这是一个很好的问题",
        "(?:这|您|你)(?:是|问|提)(?:了|的)?(?:一)?个?(?:很|非常)?(?:好|棒|有趣)的问题",
    ),
    _make("start", "感谢您的… / 非常抱歉", "(?:非常)?(?:感谢|谢谢)(?:您|你)的?|(?:非常|很|十分)抱歉"),
    _make("start", "根据您提供的…", "根据(?:您|你|以上|上述|所)(?:提供|给出|给|的)"),
    _make("end", "希望对您有帮助", "希望(?:这|以上|我的|上述)?.{0,12}(?:帮助|帮到|有用|有所)"),
    _make(
        "end",
        "如有其他问题，请随时…",
        "(?:如果?|若)(?:您|你)?(?:还)?有(?:任何|其他|其它|什么|更多).{0,12}(?:问题|需要|疑问)|请?随时(?:告诉|联系|提问|问)",
    ),
    _make(
        "anywhere", "综上所述 / 总的来说 / 总之", "(?:综上所述|总的来说|总而言之|总体而言|总之|综上)[,\uff0c]"
    ),
    _make("anywhere", "值得注意的是 / 需要注意的是", "(?:值得|需要)(?:注意|一提|强调|指出)的是"),
    _make("anywhere", "首先…其次…最后", "首先(?>[^\n]{1,300}?其次)(?>[^\n]{1,300}?(?:最后|再次))"),
)
