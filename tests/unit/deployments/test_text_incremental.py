"""Utterances of a text that arrives in pieces."""

import itertools
import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deployments.text.english import normalize
from deployments.text.incremental import TextStream
from deployments.text.splitting import Pause, Utterance, speakable

FRAGMENTS = """
Dr. e.g. U.S. p.m. J. I. etc. No. 3.5 3. 1. 2) - * *** ** _ ~~ ` `` ``` ~~~ [ ] ( ) ]( < >
<!-- --> <b> # | > ... … . ! ? " ' \u201d , ; : — -- + = a I He The word Word longerword 5 kg.
\u3002 \uff01 \uff0c \u200b \u4e16\u754c e\u0301 \u0301 \U0001f468\u200d\U0001f469 \U0001f1e9
\u1100\u1161\u11a8
""".split()  # noqa: SIM905
SEPARATORS = ["", " ", " ", "\n", "\r", "\n\n", "\r\n", "\t", " " * 70, "\n```\n"]
texts = st.lists(
    st.tuples(st.sampled_from(FRAGMENTS), st.sampled_from(SEPARATORS)), max_size=60
).map(lambda pairs: "".join(fragment + separator for fragment, separator in pairs))
limits = st.sampled_from([5, 12, 30, 60, 150])


def spoken_by(stream: TextStream, pieces: list[str]) -> list[Utterance]:
    return [u for piece in pieces for u in stream.push(piece)] + stream.flush()


def bare(text: str) -> str:
    return "".join(text.split())


def pieces_of(text: str, cuts: list[int]) -> list[str]:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(places)]


@given(texts, st.lists(st.integers(0, 300)), limits, st.integers(1, 40))
@settings(max_examples=200, deadline=None)
@example("\u0301" * 100, [50], 12, 5)
@example("-" * 300, [100], 60, 5)
@example("```\n" + "a b\n" * 90 + "```\nHe", [9], 150, 5)
def test_nothing_is_lost_and_the_pieces_do_not_matter(
    text: str, cuts: list[int], limit: int, first: int
) -> None:
    utterances = spoken_by(TextStream(limit, first), list(text))
    assert bare("".join(u.text for u in utterances)) == bare(text)
    assert all(u.text and u.text == u.text.strip() and len(u.text) <= limit for u in utterances)
    assert spoken_by(TextStream(limit, first), pieces_of(text, cuts)) == utterances
    assert spoken_by(TextStream(limit, first), [text]) == utterances


@given(texts, st.integers(0, 200), st.integers(0, 200), limits)
@settings(max_examples=200, deadline=None)
def test_nothing_is_lost_if_the_client_flushes_in_between(
    text: str, cut: int, again: int, limit: int
) -> None:
    stream = TextStream(limit, 5)
    given_ = [u.text for piece in pieces_of(text, [cut, again]) for u in spoken_by(stream, [piece])]
    assert bare("".join(given_)) == bare(text)


@pytest.mark.parametrize(
    ("text", "utterances"),
    [
        # A sentence has ended once the next one begins.
        ("This is one whole sentence. ", []),
        ("This is one whole sentence. T", ["This is one whole sentence."]),
        ("He said that it was enough.\u201d", []),
        ("He said that it was enough.\u201d T", ["He said that it was enough.\u201d"]),
        ("I have met Mr. and Mrs. S", []),
        ("The exact value is now 3.", []),
        ("The exact value is now 3.5 ", []),
        ("The exact value is now 3. Th", ["The exact value is now 3."]),
        ("They all live in the U.S. Th", []),
        ("They all live in the U.S. The ", ["They all live in the U.S."]),
        ("They all live in the U.S. Army ", []),
        ("I was thinking of it... an", []),
        ("I was thinking of it... An", ["I was thinking of it..."]),
        ("Please remember to buy\n", []),
        ("Please remember to buy\n- m", ["Please remember to buy"]),
        ("Please remember to buy\n-5", []),
        # A short one waits for the next.
        ("Hi. T", []),
        ("Hi. This is a friend. N", ["Hi. This is a friend."]),
        (
            "\u4f60\u597d\u3002\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002\u6211",
            ["\u4f60\u597d\u3002\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002"],
        ),
        # Markup stays whole.
        ("See [the docs. They are](https://example.com/a?b", []),
        ("This is **important. You see,", []),
        ("Run `first. Then second", []),
        ("```python\nx = first\ny = second\n", []),
        ("This * is no emphasis. A", ["This * is no emphasis."]),
    ],
)
def test_what_is_certain(text: str, utterances: list[str]) -> None:
    stream = TextStream(200, 200)
    assert [u.text for piece in text for u in stream.push(piece)] == utterances


def test_the_first_utterance_may_end_with_a_clause() -> None:
    stream = TextStream(200, 12)
    text = "Well, of course, you can, because you may. Then again, you may not, for now. Or"
    assert stream.push(text) == [
        ("Well, of course,", Pause.CLAUSE),
        ("you can, because you may.", Pause.SENTENCE),
        ("Then again, you may not, for now.", Pause.SENTENCE),
    ]


def test_the_first_utterance_may_be_a_short_sentence() -> None:
    assert TextStream(200, 5).push("Hello! How") == [("Hello!", Pause.SENTENCE)]
    assert TextStream(200, 7).push("Hello! How") == []


def test_a_long_sentence_is_cut_before_it_ends() -> None:
    stream = TextStream(40, 40)
    text = "It was a long day, which all of them had been looking forward to for weeks and we"
    assert stream.push(text) == [
        ("It was a long day,", Pause.CLAUSE),
        ("which all of them had been looking", Pause.WORD),
    ]


def test_after_a_flush_the_text_goes_on() -> None:
    stream = TextStream(100, 100)
    assert stream.push("Hello, ") == []
    assert stream.flush() == [("Hello,", Pause.SENTENCE)]
    assert stream.flush() == []
    assert stream.push("you over there") == []
    assert stream.flush() == [("you over there", Pause.SENTENCE)]


def test_code_that_is_longer_than_an_utterance_is_cut_at_its_lines() -> None:
    lines = [f"value_{n} = compute_something({n})" for n in range(20)]
    text = "\n".join(["```python", *lines, "```", "That was the code, all of it. Next"])
    stream = TextStream(150, 150)
    utterances = [u.text for piece in text for u in stream.push(piece)]
    assert utterances == [
        f"```python\n{lines[0]}",
        *lines[1:-1],
        f"{lines[-1]}\n```",
        "That was the code, all of it.",
    ]


@pytest.mark.parametrize("sizes", [(0, 5), (5, 0)])
def test_sizes_must_be_positive(sizes: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        TextStream(*sizes)


LONG_ROWS = ["a", " ", "-", "a ", "a. ", "`", "*a ", "[a ", "<a ", "\u3002", "\u0301", "\n", "Dr. "]


@pytest.mark.parametrize("piece", LONG_ROWS)
@pytest.mark.parametrize("size", [1, 50_000])
def test_a_long_row_of_anything_takes_linear_time_and_little_memory(piece: str, size: int) -> None:
    count = (8_000 if size == 1 else 50_000) // len(piece)
    stream = TextStream(100, 30)
    arrived = said = most_held = 0
    began = time.process_time()
    for text in [piece] * count if size == 1 else [piece * count]:
        arrived += len(bare(text))
        said += sum(len(bare(utterance.text)) for utterance in stream.push(text))
        most_held = max(most_held, arrived - said)
    assert time.process_time() - began < 15
    assert most_held <= 500
    assert said + sum(len(bare(utterance.text)) for utterance in stream.flush()) == arrived


# A reply of an assistant: one of each of these, in every rotation.
OPENINGS = [
    "Sure! Here's what I found.",
    "Hi, Dr. Lee.",
    "Okay, so...",
    "Good question! Let's see, step by step:",
    "**Short answer:** yes.",
    "I met J. R. Smith and Mrs. Jones at 7:45 p.m. yesterday.",
    '"Why not?" she asked. "Because," he said.',
]
FACTS = [
    "The bill came to $1,234.56, i.e. 20% more than in 2019. That's a lot.",
    "On March 3rd, 2021, about 3.5 million people (5% of all) lived in the U.S. They moved later.",
    "It's 12 km, or 7.5 mi., from St. Paul to Main St. and it takes 1h 20m by car.",
    "The temperature was -12.5 °C at 06:30; by 14:00 it had risen to 25°C!",
    "See https://example.com/docs/index.html?page=2 for more. It's free.",
    "Mail ann.lee@example.org, or call (555) 123-4567 before 5 p.m. Monday.",
    "Henry VIII had six wives. World War II ended in 1945. Chapter IV is about it.",
    "Apples, pears, etc. are fruit. So are plums, e.g. the blue ones.",
    "NASA and the FBI said NO. Version 2.0.1 of main.py is out... finally.",
    "The ratio is 3:1, so 10 - 3 = 7 and x^2 + y^2 >= 5. Right?",
    "The U.S. Army, Acme Inc. and Smith & Co. agreed on No. 5 of the list.",
]
ENDINGS = [
    "\n\n## What to do\n\n1. Wash the 3 apples.\n2. Peel them, then cut.\n3. Eat.\n\nEnjoy!",
    "\n- **Milk** (2 l)\n- *Eggs*, a dozen\n- Bread\n\nThat's all, I think.",
    "\n\n| Name | Age |\n|---|---|\n| Bob Miller | 35 |\n| Al Brown | 61 |\n\nDone.",
    " Read [the docs. They help](https://example.com/a_b) first. Then try `x = 5` or `run. now`.",
    "\n\n> Be yourself; everyone else\n> is already taken.\n\n\u2014 Oscar Wilde, maybe",
    "\n\n```python\nprint(1 + 2)\n```\n\nThis prints 3. Cool, isn't it?",
    "\nRoses are red,\nViolets are blue.\nI\u2019m done \u2014 bye! \U0001f600",
]
REPLIES = [
    f"{OPENINGS[a]} {FACTS[b]} {FACTS[(b + 3) % len(FACTS)]}{ENDINGS[c]}"
    for a, b, c in itertools.product(range(len(OPENINGS)), range(len(FACTS)), range(len(ENDINGS)))
    if (a + b + c) % 2 == 0
]


def words(text: str) -> list[str]:
    return re.findall("[A-Za-z']+", text)


def words_of(utterances: list[Utterance]) -> list[str]:
    return [w for u in utterances if speakable(u.text) for w in words(normalize(u.text))]


def test_there_are_many_replies() -> None:
    assert len(set(REPLIES)) > 250


@pytest.mark.parametrize("reply", REPLIES, ids=range(len(REPLIES)))
def test_the_words_are_those_of_the_whole_text(reply: str) -> None:
    """Normalised utterance by utterance, as for a text that arrives in pieces, or at once."""
    tokens = re.findall(r"\s?\w{1,4}|\s?\W", reply)
    for first in (12, 60):
        assert words_of(spoken_by(TextStream(300, first), tokens)) == words(normalize(reply))
