"""What the words around a number say it is: a telephone, a card, or only the number of an order."""

import re

from training.engine.data.cleaning.sensitive.folding import context_before

_LOOK_BACK = 40


def _word_before(chinese: str, western: str) -> re.Pattern[str]:
    # The greedy start finds the last such word; the gap holds no digits, so that the word belongs to this
    # number and not to the one before it.
    return re.compile(rf"(?s).*({chinese}|(?<![a-z])(?:{western})(?![a-z]))[^0-9]{{0,18}}$")


_PHONE = _word_before(
    "电话|手机|联系方式|联系我|座机|热线|致电|拨打|短信|来电|传真|回电",
    r"tel|tele?fon(?:nummer)?|telephone|phone|mobile?|cell|call|fax|whats ?app|sms|text|dial|ring"
    r"|contact|reach|handy(?:nummer)?|rufnummer|ruf|hotline",
)
_CARD = _word_before(
    "银行卡|信用卡|储蓄卡|借记卡|卡号|刷卡",
    r"card|visa|master ?card|amex|american express|union ?pay|credit|debit|karte(?:nnummer)?|kreditkarte",
)
_IDENTIFIER = _word_before(
    "订单|单号|编号|工单|流水|合同|发票|序列|学号|工号|批次|条码|票号",
    r"orders?|invoice|ticket|ref|reference|id|no[.:]|nr|sku|isbn|serial|tracking|account|konto|batch|barcode|ean"
    r"|version|commit|case|part|item|product|article|rechnung|auftrag|bestellung|timestamp|uid|imei"
    r"|bestellnummer|auftragsnummer|rechnungsnummer|qq",
)
_AMOUNT_BEFORE = re.compile(r"[$€£¥]\s?$")
_AMOUNT_AFTER = re.compile(
    r"\s?(?:元|块|美元|人民币|次|个|件|条|吨|%|€|(?:kg|km|ms|bytes?|eur|usd)\b)", re.IGNORECASE
)


def is_phone_context(text: str, start: int) -> bool:
    """Return whether the words in front of a number say that one may call it."""
    return _is_nearest(_PHONE, text, start)


def is_card_context(text: str, start: int) -> bool:
    """Return whether the words in front of a number speak of a payment card."""
    return _is_nearest(_CARD, text, start)


def is_identifier_context(text: str, start: int, end: int) -> bool:
    """Return whether a number is the number of an order or document, an amount, or part of an address."""
    before = context_before(text, start, _LOOK_BACK)
    if before[-1:] in tuple("#=/_&%~") or _AMOUNT_BEFORE.search(before):
        return True
    return _IDENTIFIER.match(before) is not None or _AMOUNT_AFTER.match(text, end) is not None


def _is_nearest(pattern: re.Pattern[str], text: str, start: int) -> bool:
    """Return whether the pattern's word stands nearer to the number than any word of an identifier."""
    before = context_before(text, start, _LOOK_BACK)
    wanted = pattern.match(before)
    if wanted is None:
        return False
    other = _IDENTIFIER.match(before)
    return other is None or other.start(1) <= wanted.start(1)
