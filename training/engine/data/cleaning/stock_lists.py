# ruff: noqa: RUF001 (full-width marks are what this is about)
"""Phrases of assistants that carry no content, English and Chinese (MISSION C5, T: style drift).

Written for comparison by ``stock_answers``: case, the width of marks, curly quotes and blanks do not matter.
Literal texts, so that a team can read and extend them.
"""


def _list(text: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in text.replace("\n", "|").split("|") if phrase.strip())


APOLOGIES = _list("""
    i'm sorry | i am sorry | sorry | i apologize | i apologise | my apologies | unfortunately
    很抱歉 | 非常抱歉 | 抱歉 | 对不起 | 不好意思 | 很遗憾
""")
DISCLAIMERS = _list("""
    as an ai language model | as a language model | as a large language model | as an ai assistant | as an ai
    as an artificial intelligence | i'm an ai | i am an ai | i'm just an ai | i am just an ai
    作为一个人工智能 | 作为人工智能 | 作为一名人工智能 | 作为一个ai | 作为ai | 作为一名ai | 作为一款ai
    作为一个语言模型 | 作为语言模型 | 作为大语言模型 | 作为一个大语言模型
    我是一个人工智能 | 我是人工智能 | 我是一个ai | 我只是一个ai | 我只是一个人工智能
""")
# What assistants say that they cannot do. "I can't access my account" is a customer, "I cannot attend" a
# letter that was asked for.
_CANNOT = _list("""
    i can't | i cannot | i can not | i'm unable to | i am unable to | i'm not able to | i am not able to
    i won't be able to | i will not be able to | i'm not comfortable
""")
_ACTS = _list("""
    assist | help you | help with | helping | with that | fulfill | fulfil | comply | do that | engage
    discuss | answer that | answer this | answer your | answer the question | respond to | participate in
    providing | provide you | provide that | provide this | provide any | provide medical | provide legal
    provide financial | provide information | provide instructions | provide guidance | provide advice
    provide assistance | provide real-time | generate that | generate this | generate content | give you
    offer medical | offer legal | process that | process this request | complete your request
    access real-time | access external | access the internet | browse the
""")
_CANNOT_ZH = _list("""
    我无法 | 我不能 | 我没办法 | 我没有办法 | 我不可以 | 无法为您 | 无法为你 | 不能为您 | 不能为你
""")
_ACTS_ZH = _list("""
    回答 | 讨论 | 帮助 | 协助 | 帮您 | 帮你 | 为您 | 为你 | 给您 | 给你 | 给出 | 满足您 | 满足你 | 满足这
    提供此类 | 提供相关 | 提供这 | 提供该 | 提供医疗 | 提供法律 | 提供具体 | 提供任何 | 提供您 | 提供帮助
    完成您的 | 完成你的 | 完成这个请求 | 完成该请求 | 处理您的请求 | 处理你的请求 | 处理这个请求
    访问互联网 | 访问实时 | 访问外部 | 生成此类 | 生成该 | 生成这 | 继续这个话题
""")
REFUSALS = (
    *(f"{cannot} {act}" for cannot in _CANNOT for act in _ACTS),
    *(f"{cannot}{act}" for cannot in _CANNOT_ZH for act in _ACTS_ZH),
    *_list("""
        i do not have access to real-time | i don't have access to real-time | i don't have the ability to
        i must decline | 我没有能力回答 | 我不具备 | 这个问题我无法 | 这个问题我不能
    """),
)
NEGATIONS = _list("""
    can't | cannot | can not | don't | do not | unable | not able | won't | 无法 | 不能 | 没有 | 不具备 | 不会
""")
TURNS = _list("""
    but | however | here is | here are | 但 | 不过 | 然而 | 以下 | 如下
""")
"""Words behind which a disclaimer goes on to an answer."""

INTERJECTIONS = _list("""
    sure | sure thing | certainly | of course | absolutely | definitely | great question | good question
    that's a great question | no problem | happy to help | i'd be happy to help
    thank you for your question | thanks for your question | thank you for reaching out
    当然 | 当然可以 | 没问题 | 好问题 | 这是一个很好的问题 | 这是个好问题 | 感谢您的提问 | 感谢你的提问
    很高兴为您服务 | 很高兴为你服务 | 很高兴为您解答 | 好的，没问题
""")
"""Openings that are a sentence of their own; ``Sure`` in front of a comma and words is none."""

ANNOUNCEMENTS = _list("""
    好的，我来 | 好的，让我 | 好的，我将 | 好的，我会 | 我来帮您 | 我来帮你 | 让我来帮 | 让我来为您 | 下面我来
    接下来我将 | let me help you | i'll help you | i will help you | i can help you with that
    let me walk you through | i'd be happy to help you | i would be happy to help | i'm happy to help
""")
"""Openings that say that an answer will come; the whole sentence says no more."""

INTRODUCTIONS = _list("""
    here is | here's | here are | below is | below are | the following is | the following are
    sure, here | sure! here | certainly, here | certainly! here | of course, here | of course! here
    based on your request | based on the information you provided | as requested
    好的，以下 | 好的，下面 | 好的，这是 | 好的，根据您 | 好的，根据你 | 好的，为您
    当然，以下 | 当然，下面 | 当然可以，以下 | 没问题，以下 | 以下是 | 下面是 | 以下为
    根据您的要求 | 根据你的要求 | 根据您提供的信息 | 根据你提供的信息 | 根据您的描述
""")
"""Openings that lead over to the content; only in front of a colon are they surely no content."""

CLOSINGS = _list("""
    i hope this helps | hope this helps | i hope that helps | hope that helps | let me know if
    please let me know if | feel free to ask | please feel free to | feel free to reach out
    if you have any other questions | if you have any further questions | if you have any more questions
    if you need further assistance | if you need any further assistance | is there anything else
    希望对您有帮助 | 希望对你有帮助 | 希望这对您有帮助 | 希望这对你有帮助 | 希望能对您有所帮助
    希望能帮到您 | 希望能帮到你 | 希望以上 | 希望这些信息 | 如有其他问题 | 如有任何问题
    如果您还有其他问题 | 如果你还有其他问题 | 如果您有任何问题 | 如果你有任何问题 | 如果还有其他问题
    如需进一步帮助 | 还有什么可以帮您 | 还有什么可以帮助您 | 请随时告诉我 | 请随时联系我 | 欢迎随时提问
    祝您生活愉快 | 以上就是
""")
