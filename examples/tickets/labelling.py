"""The labelling rules of README.md as a program: from the text of a message alone to its ticket.

For each value there is a list of cues (``cues.py`` says how they are written); values are tried in the order
of README.md and the first that fits decides. The cues are wordings that customers use, not messages: a
message that none of them fits gets no ticket, and then a cue is missing or the message says too little.

Only the standard library is used.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cues import CueSet, list_words, prepare, repair_swaps

PROBLEM_TYPES = ("login", "billing", "crash", "performance", "data_loss", "how_to")
URGENCIES = ("low", "normal", "high", "critical")
MODULES = ("mobile", "web", "api", "reports", "calendar")
ACTION_OF_PROBLEM = {
    "login": "unlock",
    "billing": "refund",
    "crash": "fix",
    "performance": "fix",
    "data_loss": "restore",
    "how_to": "explain",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """The four labels of a message, of which the action follows from the rest."""

    problem_type: str
    urgency: str
    module: str
    asks_for_call: bool

    @property
    def action(self) -> str:
        """The action by the written rule: escalate, else call back, else what the problem type asks for."""
        if self.urgency == "critical":
            return "escalate"
        if self.asks_for_call:
            return "call"
        return ACTION_OF_PROBLEM[self.problem_type]

    def to_answer(self) -> str:
        """The reference answer: one line of compact JSON, keys in the order of the schema."""
        answer = {
            "problem_type": self.problem_type,
            "urgency": self.urgency,
            "module": self.module,
            "action": self.action,
        }
        return json.dumps(answer, separators=(",", ":"))


# What the customer complains of; the first that fits decides.
PROBLEM_CUES: Mapping[str, CueSet] = {
    # No access: a password, code, key or account is refused, locked or expired.
    "login": CueSet(
        says=(
            "locked|lock|locks|kicks .. out",
            "locked|blocked|disabled .. account",
            "account|login|access .. locked|blocked|disabled|expired|refused|rejected|denied",
            "password|code|credentials|token|user|username .. rejected|refused|invalid|wrong|expired|unknown",
            "password|code|key|login .. not accepted|right|work",
            "rejects|refuses|wrong|invalid|forgot|unknown .. password|code|key|login|user|username",
            "wont|not take .. password|code",
            "code .. never|not arrives|comes|sent",
            "reset link|mail",
            "access denied|refused",
            "no|not|without access",
            "not authorised|authorized",
            "cant|cannot|unable|none|trying .. log|sign|get in|into",
            "cant|cannot|not login|authenticate",
            "log|logging|sign|signing|login|authentication|authenticate .. fails|failed|refused|rejected",
            "wont|not let me in|through",
            "back to the login",
            "past the login|sign",
            "authenticator",
            "sign|log in .. again",
            "not|longer .. recognises|recognizes .. login",
        ),
    ),
    # A charge, invoice, price or refund is wrong.
    "billing": CueSet(
        says=(
            "charge|charges|charged|charging",
            "overcharge*",
            "invoice*",
            "bill|bills|billed|billing",
            "debited",
            "paid|pay|payment|payments",
            "price|fee|cost|costs",
            "receipt",
            "refund",
            "credit note",
            "discount|promo code",
            "took|collected .. money|euros",
            "money|payment .. back|returned",
            "subscription .. renewed|cancelled",
            "renewed .. although|without",
        ),
    ),
    # An error message, a blank page, it closes by itself or does not start.
    "crash": CueSet(
        says=(
            "crash*",
            "error*",
            "exception",
            "bug",
            "white|blank|empty page|screen",
            "something went wrong",
            "closes|closed|shuts|shut by|down|itself",
            "quits|exits|aborts|abort|dies|breaks",
            "fails|stops with",
            "kills",
            "does|will not start|open",
            "wont start|open",
            "is|been down",
            "stack trace",
        ),
        unless=("production is down", "does|do|did not crash"),
    ),
    # It works, but slowly.
    "performance": CueSet(
        says=(
            "slow*",
            "lag|lags|lagging",
            "sluggish",
            "delay|delayed|delays",
            "latency",
            "performance",
            "speed",
            "stutter*",
            "snails pace",
            "creeps|crawls|crawling|drags",
            "load|response time|times",
            "take|takes|took|need|needs|needed|run .. minute|minutes|min|seconds",
            "take|takes|took|needs|lasts .. ages|forever|eternity|long*",
            "wait forever",
            "long wait",
            "turns .. minute",
            "minutes|seconds late",
            "from .. second|ms to",
            "minutes per",
        ),
    ),
    # Stored content is missing, deleted or overwritten.
    "data_loss": CueSet(
        says=(
            "vanish*",
            "disappear*",
            "missing|absent|gone|lost",
            "deleted|erased|wiped|removed|emptied|dropped",
            "overwrote|overwritten",
            "empty",
            "no longer .. there|find|in",
            "zero records",
            "threw away",
        ),
    ),
    # Nothing is broken: the customer asks how something is done or what it means.
    "how_to": CueSet(
        says=(
            "how do|does|can|would|many|to",
            "where .. do|can|is|would|set",
            "which button|option|call",
            "what does|do|are|is",
            "means|mean",
            "is there a way|tutorial",
            "is it possible",
            "explain|explanation",
            "steps to",
            "trick to",
            "understand how",
            "learn how",
            "can i use",
        ),
    ),
}

# What the customer states, not what we would think of it; the first that fits decides.
URGENCY_CUES: Mapping[str, CueSet] = {
    # A whole group is blocked or harmed, or money is being lost right now.
    "critical": CueSet(
        says=(
            "whole|entire|complete _ team|company|firm|department|business|office|floor|desk|ward",
            "whole|entire|complete _ warehouse|hospital|hotel|shop|centre|fleet",
            "total outage",
            "all|every|none .. customers|users|clients|branches|depots|drivers|staff",
            "all|none of our people",
            "people .. cant|cannot",
            "all|each|none of us|our",
            "not a|one single|of",
            "nobody .. can|work",
            "everybody|everyone",
            "hundreds|thousands of",
            "lose|losing|bleeding .. money|sales|orders|revenue|thousands",
            "money|orders|revenue .. lost",
            "production is down",
            "cant|cannot|not sell",
            "no sales",
        ),
        unless=("not everyone|everybody", "wish everyone|everybody"),
    ),
    # Called urgent; due today, tomorrow or within hours; somebody is waiting now; the writer cannot work.
    "high": CueSet(
        says=(
            "urgent",
            "asap",
            "as soon as possible",
            "immediately",
            "hurry",
            "be quick",
            "quickly|fast",
            "straight away",
            "pressing",
            "tomorrow|tonight",
            "deadline",
            "need|needs|needed|must|wants|due .. today|noon|evening|afternoon|midnight",
            "have|has to .. today|noon|evening|afternoon|midnight",
            "answer _ today",
            "by|before .. today|noon|evening",
            "in an|two|three hour|hours",
            "waiting .. today",
            "end of the day",
            "stuck",
            "cant|cannot .. work|job",
            "work stands still",
        ),
        unless=("not|was urgent|pressing", "no|not .. hurry", "to be quick"),
    ),
    # The customer says that it can wait or is unimportant.
    "low": CueSet(
        says=(
            "no|not .. hurry|rush|stress|urgent|pressing|important|bother",
            "no time pressure",
            "not|dont .. need .. soon",
            "not|dont bother|mind",
            "can wait",
            "take your time",
            "whenever you|u",
            "priority whenever",
            "any time",
            "some|one day",
            "some time",
            "sometime",
            "low|lowest priority",
            "priority|severity low|lowest|trivial",
            "next month|year .. fine|enough",
            "small|minor|tiny|little thing|nuisance",
            "trifle|trivial",
            "live with it|that",
            "nothing important",
            "early enough",
            "has time",
            "in passing",
            "bottom|last .. list",
            "leave it",
            "when .. quiet",
        ),
    ),
}

# The names of the parts of the product.
MODULE_CUES: Mapping[str, CueSet] = {
    "mobile": CueSet(
        says=(
            "app|apps",
            "android|iphone|ipad|ios",
            "smartphone|tablet|mobile",
            "my phone",
        ),
        unless=("authenticator app",),
    ),
    "web": CueSet(says=("web|website", "site", "portal", "browser", "chrome|firefox|safari|edge")),
    "api": CueSet(says=("api", "endpoint", "webhook", "sdk", "rest|graphql", "integration")),
    "reports": CueSet(
        says=(
            "report|reports",
            "dashboard",
            "statistics|analytics",
            "chart|charts",
            "export",
            "summary",
        ),
        unless=("to report", "i|we|you|to export"),
    ),
    "calendar": CueSet(
        says=(
            "calendar",
            "schedule",
            "roster",
            "booking|bookings",
            "appointment|appointments",
            "planner",
            "shift plan",
            "event",
        ),
    ),
}

CALL_CUES = CueSet(
    says=(
        "call|phone|ring|telephone me|us|our",
        "please call|phone|ring|telephone",
        "give me|us a call|ring",
        "phone call",
        "call back",
        "callback",
        "by|on|over the telephone|phone",
        "by telephone|phone",
    ),
    unless=("not|dont call|phone|ring|telephone", "no need to call|phone"),
)

# Words of other languages that customers mix in.
GLOSSARY = (
    ("手机", "phone"),
    ("打不开", "does not open"),
    ("不见了", "disappeared"),
    ("不着急", "no hurry"),
    ("很急", "urgent"),
    ("所有人", "everybody"),
    ("无法登录", "cannot log in"),
    ("发票", "invoice"),
    ("太慢", "slow"),
    ("打电话", "call me"),
    ("过期", "expired"),
    ("今天必须", "must be today"),
    ("tres lente", "very slow"),
    ("nicht einloggen", "cannot log in"),
)

_KNOWN_WORDS = list_words(
    cue
    for cues in (*PROBLEM_CUES.values(), *URGENCY_CUES.values(), *MODULE_CUES.values(), CALL_CUES)
    for cue in (*cues.says, *cues.unless)
)


# What is over is no complaint.
SETTLED_CUES = CueSet(says=("is|was settled",))


def label(text: str) -> Ticket | None:
    """The ticket that follows from a message by the written rules.

    Returns:
        None when the text states no problem or names no module: then no ticket follows from it.
    """
    sentences = [repair_swaps(sentence, _KNOWN_WORDS) for sentence in prepare(text, glossary=GLOSSARY)]
    open_matters = [sentence for sentence in sentences if SETTLED_CUES.find(sentence) is None]
    problem_type = _find_first(PROBLEM_CUES, open_matters)
    if problem_type is None:
        return None
    module = _find_module(open_matters, PROBLEM_CUES[problem_type])
    if module is None:
        return None
    return Ticket(
        problem_type=problem_type,
        urgency=_find_first(URGENCY_CUES, sentences) or "normal",
        module=module,
        asks_for_call=CALL_CUES.are_in(sentences),
    )


def _find_first(cues_of_value: Mapping[str, CueSet], sentences: Sequence[str]) -> str | None:
    """The first value of which a cue stands in the sentences."""
    return next((value for value, cues in cues_of_value.items() if cues.are_in(sentences)), None)


def _find_module(sentences: Sequence[str], problem: CueSet) -> str | None:
    """The module named in a sentence that states the problem, else the first that is named at all."""
    stating = [sentence for sentence in sentences if problem.find(sentence) is not None]
    return next(_list_modules([*stating, *sentences]), None)


def _list_modules(sentences: Sequence[str]) -> Iterator[str]:
    """The modules in the order in which the sentences name them."""
    for sentence in sentences:
        places = {module: cues.find(sentence) for module, cues in MODULE_CUES.items()}
        named = {module: place for module, place in places.items() if place is not None}
        yield from sorted(named, key=lambda module: named[module])
