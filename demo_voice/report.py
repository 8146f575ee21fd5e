"""An evaluation as Markdown. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from demo_voice.figures import LOUD_DB, Difference, Playback
from demo_voice.results import (
    LONGEST,
    SHORTEST,
    Comparison,
    Evaluation,
    Result,
    dry_share,
    quality,
    slowest,
    wer,
)
from demo_voice.targets import TARGETS
from demo_voice.texts import HELD_OUT_DOMAINS


def to_markdown(evaluation: Evaluation) -> str:
    """The whole report."""
    sections = [
        _heading(evaluation),
        _targets(evaluation),
        _words(evaluation),
        _lengths(evaluation),
        _quality(evaluation),
        _guidance(evaluation),
        _real_time(evaluation),
        _method(evaluation),
    ]
    return "\n\n".join(sections) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table: the first column to the left, the others to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _heading(evaluation: Evaluation) -> str:
    return f"""# What the demonstration voice can do

Made by a machine: do not edit. Everything was measured through the running service.

| | |
|---|---|
| model | `{evaluation.model}` |
| SHA-256 of its files | `{evaluation.fingerprint}` |
| guidance, where none is said below | {evaluation.scale:g} |
| held-out sentences | {len(evaluation.teacher)} |
| CPU cores, service and evaluation together | {evaluation.cores} |

Again: `{evaluation.command}`"""


def _targets(evaluation: Evaluation) -> str:
    rows = [
        [
            target.name,
            target.bound,
            f"{target.figure(evaluation):{target.form}}",
            "met" if target.met(evaluation) else "**missed**",
        ]
        for target in TARGETS
    ]
    return f"## Targets\n\n{table(['', 'target', 'measured', ''], rows)}"


def _words(evaluation: Evaluation) -> str:
    head = [
        "",
        "sentences",
        "words",
        "teacher",
        "round trip",
        "served",
        "served less teacher",
        "served less round trip",
    ]
    rows = [
        [
            name,
            str(len(part.teacher)),
            str(sum(result.errors.words for result in part.teacher)),
            f"{wer(part.teacher):.1%}",
            f"{wer(part.round_trip):.1%}",
            f"{wer(part.served):.1%}",
            _points(part.over_teacher),
            _points(part.over_round_trip),
        ]
        for name, part in _parts(evaluation.at(evaluation.scale))
    ]
    return f"""## Word error rate

What the recogniser makes of the teacher's own audio, of the codec's round trip of that audio, and
of the served speech. Differences are in percentage points, with 95 % confidence intervals by
bootstrap over sentences. The domain `words` has no grammar that could help the recogniser.

{table(head, rows)}"""


def _lengths(evaluation: Evaluation) -> str:
    rows = [
        [
            name,
            f"{part.stop_share:.1%}",
            f"{part.lasting_share:.1%}",
            f"{part.median_duration_ratio:.2f}",
            f"{min(part.duration_ratios):.2f} to {max(part.duration_ratios):.2f}",
        ]
        for name, part in _parts(evaluation.at(evaluation.scale))
    ]
    within = f"{SHORTEST:g} to {LONGEST:g}"
    head = ["", "ended by itself", f"ratio {within}", "median ratio", "all ratios"]
    return f"""## Ends and durations

Whether the model ended by itself, and the duration of the served speech over the teacher's,
without the silence before and after: what is more than {-LOUD_DB:g} dB below the loudest 10 ms.

{table(head, rows)}"""


def _quality(evaluation: Evaluation) -> str:
    comparison = evaluation.at(evaluation.scale)
    sources = {
        "teacher": comparison.teacher,
        "round trip": comparison.round_trip,
        "served": comparison.served,
    }
    rows = [
        [f"{source}, {voice}", *_scores(_of_voice(results, voice))]
        for source, results in sources.items()
        for voice in _voices(results)
    ]
    rows += [[source, *_scores(results)] for source, results in sources.items()]
    return f"""## Estimated quality

Mean opinion scores, 1 to 5, as DNSMOS estimates them: P.835's three and P.808's one.

{table(["", "overall", "signal", "background", "P.808"], rows)}"""


def _guidance(evaluation: Evaluation) -> str:
    rows = []
    for scale in sorted(evaluation.served):
        part = evaluation.at(scale)
        rows.append(
            [
                f"{scale:g}" + (" (off)" if scale == 1 else ""),
                f"{wer(part.served):.1%}",
                *(f"{wer(part.of(domain=domain).served):.1%}" for domain in HELD_OUT_DOMAINS),
                f"{part.stop_share:.1%}",
                f"{part.lasting_share:.1%}",
                f"{part.median_duration_ratio:.2f}",
                f"{quality(part.served).p808:.2f}",
            ]
        )
    head = ["scale", "word error rate", *HELD_OUT_DOMAINS, "ended by itself"]
    head += [f"ratio {SHORTEST:g} to {LONGEST:g}", "median ratio", "P.808"]
    return f"## Guidance\n\n{table(head, rows)}"


def _real_time(evaluation: Evaluation) -> str:
    rows = [
        _stream_row("1", evaluation.one),
        _stream_row(str(evaluation.together), evaluation.many),
    ]
    head = ["at a time", "streams", "median RTF", "highest RTF", "median first audio"]
    head += ["latest first audio", "least headroom", "without running dry"]
    return f"""## Real time

With the guidance named at the top. The real-time factor (RTF) is the time from the request to the
last byte, over the duration of the audio. A listener starts to play at the first byte; the headroom
is the audio not yet played, just before more arrives. Below zero, playback ran dry.

{table(head, rows)}"""


def _stream_row(name: str, streams: Sequence[Playback]) -> list[str]:
    first = [stream.first_audio for stream in streams]
    return [
        name,
        str(len(streams)),
        f"{median(stream.real_time_factor for stream in streams):.2f}",
        f"{slowest(streams):.2f}",
        f"{median(first):.2f} s",
        f"{max(first):.2f} s",
        f"{min(stream.headroom for stream in streams):.2f} s",
        f"{1 - dry_share(streams):.1%}",
    ]


def _method(evaluation: Evaluation) -> str:
    settings = "\n".join(f"- {name}: `{value}`" for name, value in evaluation.judges.items())
    return f"""## The judges

pocketsphinx with its own English acoustic and language model, whole utterances, no grammar; and
speechmos. Of both sides the words are compared in lower case without punctuation, numbers spelled
out, and two words for one compound are right. All sources are treated alike.

{settings}"""


def _parts(comparison: Comparison) -> list[tuple[str, Comparison]]:
    return [
        *((domain, comparison.of(domain=domain)) for domain in HELD_OUT_DOMAINS),
        *((voice, comparison.of(voice=voice)) for voice in _voices(comparison.teacher)),
        ("all", comparison),
    ]


def _voices(results: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(result.sentence.voice for result in results))


def _of_voice(results: Sequence[Result], voice: str) -> list[Result]:
    return [result for result in results if result.sentence.voice == voice]


def _scores(results: Sequence[Result]) -> list[str]:
    mean = quality(results)
    return [f"{q:.2f}" for q in (mean.overall, mean.signal, mean.background, mean.p808)]


def _points(difference: Difference) -> str:
    value, low, high = (100 * x for x in (difference.value, difference.low, difference.high))
    return f"{value:+.1f} ({low:+.1f} to {high:+.1f})"
