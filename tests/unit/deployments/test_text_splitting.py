"""Where a text is cut into utterances."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deployments.text.english import normalize
from deployments.text.graphemes import safe_place, torn
from deployments.text.splitting import Pause, Utterance, rewritten, speakable, split

FRAGMENTS = """
Dr. e.g. i.e. U.S. p.m. J. I. etc. No. St. 3.5 3. 12:30 1. 2) - * ** _ ~~ ` ``` ~~~ [ ] ( ) ]( <
> <!-- --> <b> # | > ... … . ! ? " ' \u201c \u201d
, ; : — \u2013 -- a I He word Word \u3002 \uff01 \uff0c \u200b \u4e16\u754c é e\u0301
\U0001f468\u200d\U0001f469 \U0001f1e9\U0001f1ea \U0001f44d\U0001f3fd \uac01
\u1100\u1161\u11a8 \u0915\u094d\u0937
\ud83d\ude00 \ud800 https://example.com/a.b?c=d
""".split()  # noqa: SIM905
SEPARATORS = ["", "", " ", " ", "\n", "\n\n", "\r\n", "\t", "\u2029", " " * 70]
written = st.lists(
    st.tuples(st.sampled_from(FRAGMENTS), st.sampled_from(SEPARATORS)), max_size=40
).map(lambda pairs: "".join(fragment + separator for fragment, separator in pairs))
texts = st.one_of(st.text(), written)
limits = st.one_of(st.integers(1, 40), st.sampled_from([100, 400]))


def texts_of(utterances: list[Utterance]) -> list[str]:
    return [utterance.text for utterance in utterances]


def bare(text: str) -> str:
    return "".join(text.split())


@given(texts, limits)
@settings(max_examples=300, deadline=None)
@example("a" + "\u0301" * 100, 10)
@example("-" * 100, 10)
def test_nothing_is_lost_and_every_limit_holds(text: str, limit: int) -> None:
    utterances = texts_of(split(text, limit))
    assert bare("".join(utterances)) == bare(text)
    for utterance in utterances:
        assert utterance
        assert utterance == utterance.strip()
        assert len(utterance) <= limit


@given(
    st.lists(st.text("aB1é\u4e16 .,!?-*—\n", min_size=1, max_size=9), min_size=1, max_size=30),
    st.integers(20, 60),
)
@settings(max_examples=150, deadline=None)
def test_every_utterance_has_something_to_speak(words: list[str], limit: int) -> None:
    """Between two letters are at most nine signs: less than half of what is possible."""
    text = "x".join(words) + "x"
    assert all(speakable(utterance) for utterance in texts_of(split(text, limit)))


@pytest.mark.parametrize(
    ("text", "utterances"),
    [
        (
            "The first sentence is here. The second one follows! Is this the third one?",
            ["The first sentence is here.", "The second one follows!", "Is this the third one?"],
        ),
        (
            'She said: "We are leaving at once." They did not answer her.',
            ['She said: "We are leaving at once."', "They did not answer her."],
        ),
        (
            "(This is in brackets entirely.) [And so is this one, too.] That was it, I think.",
            [
                "(This is in brackets entirely.)",
                "[And so is this one, too.]",
                "That was it, I think.",
            ],
        ),
        (
            "What a long ellipsis this is… It goes on and on like this... Or does it really not?",
            [
                "What a long ellipsis this is…",
                "It goes on and on like this...",
                "Or does it really not?",
            ],
        ),
        (
            "all of this is in small letters. so is the second sentence.",
            ["all of this is in small letters.", "so is the second sentence."],
        ),
        (
            "\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff0c\u6211\u4eec\u53bb\u516c\u56ed\u6563\u6b65\u5427\uff0c\u597d\u4e0d\u597d\u5440\u3002"
            "\u660e\u5929\u53ef\u80fd\u4f1a\u4e0b\u96e8\uff0c\u6240\u4ee5\u6211\u4eec\u4eca\u5929\u53bb\u6bd4\u8f83\u597d\uff01",
            [
                "\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff0c\u6211\u4eec\u53bb\u516c\u56ed\u6563\u6b65\u5427\uff0c\u597d\u4e0d\u597d\u5440\u3002",
                "\u660e\u5929\u53ef\u80fd\u4f1a\u4e0b\u96e8\uff0c\u6240\u4ee5\u6211\u4eec\u4eca\u5929\u53bb\u6bd4\u8f83\u597d\uff01",
            ],
        ),
        (
            "It happened in the U.S. He was surprised. So do I. Then we all went home.",
            ["It happened in the U.S.", "He was surprised. So do I.", "Then we all went home."],
        ),
        (
            "The meeting ended in 2021. The next one is planned for 2025.",
            ["The meeting ended in 2021.", "The next one is planned for 2025."],
        ),
    ],
)
def test_sentences_are_apart(text: str, utterances: list[str]) -> None:
    assert texts_of(split(text, 200)) == utterances


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Smith and Mr. and Mrs. Jones met St. John and Prof. Lee.",
        "Take some fruit, e.g. apples, i.e. Braeburn, or pears, etc. and go.",
        "The author is J. R. R. Tolkien, as John F. Kennedy told us.",
        "It costs 3.5 million at 12.30 and version 2.0.1 is better.",
        "We met at 5 p.m. Monday in the U.S. Army base near Washington, D.C. to talk.",
        "See https://example.com/a.html?b=c.d or www.example.co.uk and main.py for more.",
        "I was thinking... maybe we could… go there after all.",
        '"Stop that right now!" he said, and "Why should I?" she asked.',
        "See No. 5, Fig. 3, pp. 10 to 12, vol. 2 of the Acme Inc. report.",
        "The board is 5 in. long and weighs 2 lb. more than mine in Apt. 5B, ext. 42.",
        "Smith et al. vs. Jones is the case that Acme Corp. lawyers cite.",
    ],
)
def test_what_is_no_end_of_a_sentence(sentence: str) -> None:
    assert texts_of(split(sentence, 200)) == [sentence]


@pytest.mark.parametrize(
    ("text", "utterances"),
    [
        ("Hi. Yes.", ["Hi. Yes."]),
        ("Hi. How are you today, my friend?", ["Hi. How are you today, my friend?"]),
        (
            "# Rules\n\nThis is the first paragraph.\n\n"
            "Of course it is. Yes.\n\nAnd here is the second one.",
            [
                "# Rules\n\nThis is the first paragraph.",
                "Of course it is. Yes.",
                "And here is the second one.",
            ],
        ),
        (
            "Here is a sentence first.\n\n---\n\nHere is the other one.",
            ["Here is a sentence first.", "---\n\nHere is the other one."],
        ),
        ("This is a whole sentence. *** !!!", ["This is a whole sentence. *** !!!"]),
    ],
)
def test_what_is_too_short_is_with_a_neighbour(text: str, utterances: list[str]) -> None:
    assert texts_of(split(text, 200)) == utterances


def test_what_is_short_stays_alone_if_there_is_no_room() -> None:
    text = "Well. This sentence is as long as can be."
    assert texts_of(split(text, 35)) == ["Well.", "This sentence is as long as can be."]


@pytest.mark.parametrize(
    ("text", "limit", "utterances"),
    [
        (
            "When the rain had stopped at last, we all went out into the garden again.",
            60,
            ["When the rain had stopped at last,", "we all went out into the garden again."],
        ),
        (
            "one two three four five six seven eight nine ten",
            40,
            ["one two three four five", "six seven eight nine ten"],
        ),
        (
            "We left — all of us together — on the very same day.",
            40,
            ["We left — all of us together —", "on the very same day."],
        ),
        (
            "The price has gone up by about 5 km to 1,500 kg at least",
            33,
            ["The price has gone up by", "about 5 km to 1,500 kg at least"],
        ),
        (
            "It is always (5 + 3) * 2 that you have",
            25,
            ["It is always", "(5 + 3) * 2 that you have"],
        ),
        ("a" * 10 + " " + "b" * 30, 30, ["a" * 10, "b" * 30]),
        ("x" * 25, 10, ["x" * 8, "x" * 8, "x" * 9]),
        ("Hey" + " " * 500 + "you", 10, ["Hey", "you"]),
    ],
)
def test_a_long_sentence_is_cut_near_the_middle_of_its_best_borders(
    text: str, limit: int, utterances: list[str]
) -> None:
    assert texts_of(split(text, limit)) == utterances


@given(st.lists(st.integers(1, 12), min_size=60, max_size=200), st.integers(40, 120))
@settings(deadline=None)
def test_no_tiny_rest_is_left_of_a_long_sentence(sizes: list[int], limit: int) -> None:
    utterances = texts_of(split(" ".join("w" * size for size in sizes), limit))
    assert min(map(len, utterances)) >= limit / 4 - 12


@pytest.mark.parametrize(
    "character",
    [
        "e\u0301\u0323",
        "\u0e01\u0e34\u0e49",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\U0001f44d\U0001f3fd",
        "\u2764\ufe0f",
        "\U0001f1e9\U0001f1ea",
        "\U0001f3f4\U000e0067\U000e0062\U000e007f",
        "\u1100\u1161\u11a8",
        "\uac00\u11a8",
        "\u0915\u094d\u0937",
        "\uff76\uff9e",
        "\ud83d\ude00",
    ],
)
def test_a_visible_character_is_not_torn(character: str) -> None:
    assert all(torn(character, place) for place in range(1, len(character)))
    assert not torn(character * 2, len(character))
    for limit in range(len(character), 4 * len(character)):
        utterances = texts_of(split(character * 20, limit))
        assert all(u.replace(character, "") == "" for u in utterances)
        assert all(len(u) % len(character) == 0 for u in utterances)


def test_a_place_in_a_character_that_is_larger_than_an_utterance() -> None:
    assert safe_place("a" + "\u0301" * 9, 4, 1, 9) == 4


def test_a_pause_says_what_an_utterance_ends_with() -> None:
    text = (
        "This is the first sentence of all. This is a long second sentence, which has two clauses."
        "\n\nword word word word word word word word word word word word"
    )
    assert split(text, 45) == [
        ("This is the first sentence of all.", Pause.SENTENCE),
        ("This is a long second sentence,", Pause.CLAUSE),
        ("which has two clauses.", Pause.PARAGRAPH),
        ("word word word word word word", Pause.WORD),
        ("word word word word word word", Pause.SENTENCE),
    ]


@pytest.mark.parametrize("text", ["", " ", "\n\n \u3000\u2029"])
def test_a_blank_text_has_no_utterances(text: str) -> None:
    assert split(text, 10) == []


def test_a_limit_must_be_positive() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        split("word", 0)


LONG_ROWS = [
    *("a", "a ", "a. ", ". ", ".", " ", "-", "-. ", "\n", "Dr. ", "e.g. ", "3. ", '"', "( ", ") "),
    *(
        "*",
        "* ",
        "*a ",
        "**a *",
        "_a ",
        "`",
        "` ",
        "`a ",
        "\n```\n",
        "\n```a ",
        "[",
        "[a ",
        "[](",
        "<",
    ),
    *("<a ", "<!--", "~~", "\u3002", "\uff0c", "—", "\u200b", "\u0301", "\u200d", "\u094d\u0915"),
    *("\U0001f1e9", "\ud83d", "\u1100", "a" + "\u0301" * 30, "\n- ", "\r\n", "…", "A.", "A. "),
]


@pytest.mark.parametrize("piece", LONG_ROWS)
@pytest.mark.parametrize("limit", [50, 4096])
def test_a_long_row_of_anything_takes_linear_time(piece: str, limit: int) -> None:
    """In quadratic time this would take minutes."""
    text = piece * (30_000 // len(piece))
    began = time.process_time()
    utterances = texts_of(split(text, limit))
    assert time.process_time() - began < 3
    assert sum(map(len, map(bare, utterances))) == len(bare(text))


def test_words_that_have_become_too_many_are_split_again() -> None:
    original = Utterance("It costs $1,234,567.89, or about £999,999.99!", Pause.PARAGRAPH)
    words = normalize(original.text)
    utterances = rewritten(original, words, 60)
    assert " ".join(texts_of(utterances)) == words
    assert len(words) > 120
    assert max(map(len, texts_of(utterances))) <= 60
    assert [u.pause for u in utterances][-2:] == [Pause.WORD, Pause.PARAGRAPH]


def test_words_that_are_few_enough_stay_together() -> None:
    original = Utterance("Dr. Who?", Pause.CLAUSE)
    assert rewritten(original, "Doctor Who?", 60) == [Utterance("Doctor Who?", Pause.CLAUSE)]


@pytest.mark.parametrize("words", ["", "?!"])
def test_without_words_there_is_nothing_to_speak(words: str) -> None:
    assert rewritten(Utterance("--", Pause.WORD), words, 60) == []
