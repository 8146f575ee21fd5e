"""The shipped voice: served ids equal the reference's for twenty sentences."""

from collections.abc import Iterator

import pytest

from demo_voice.recipe import MODEL
from demo_voice.texts import held_out
from deployments.text.english import normalize
from engine_adapter.tokenizer import SpeechTokenizer
from tests.engine.harness import ROOMY, Harness, check, requests_of
from tests.reference.generate import Reference, ReferenceRequest, text_prompt
from tests.reference.requests import Case, required_margin

pytestmark = pytest.mark.engine

SENTENCES = held_out("everyday")[:10] + held_out("numbers")[:5] + held_out("words")[:5]
# Trained weights give larger logits than random ones, and with them larger rounding errors.
THRESHOLD = 1e-4


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    started = Harness(str(MODEL), ROOMY)
    yield started
    started.close()


def test_sentences_equal_the_reference(harness: Harness) -> None:
    reference = Reference(MODEL)
    tokenizer = SpeechTokenizer(MODEL, reference.spec)
    spec = reference.spec
    cases = []
    for index, sentence in enumerate(SENTENCES):
        voice = list(spec.voices)[index % len(spec.voices)]
        prompt = text_prompt(spec, "audio", tokenizer.encode(normalize(sentence)), voice)
        for seed in range(100):
            request = ReferenceRequest(prompt, seed=seed, max_frames=200)
            result = reference.generate(request)
            if result.margin >= required_margin(result.cfg_scale, THRESHOLD):
                break
        else:
            pytest.fail(f"every seed has a close decision: {sentence}")
        cases.append(Case(request, result))
    results = harness.run(harness.together(requests_of(cases)))
    check(cases, results)
    assert [case.result.finish_reason for case in cases].count("stop") >= 19
    assert harness.counters()["preempted"] == 0
