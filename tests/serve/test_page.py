"""The page in Chromium, before the running service."""

from __future__ import annotations

import re
import subprocess
import time
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser import Page, chromium
from tests.serve.service_process import Service

pytestmark = pytest.mark.serve

RATE = 24_000
CONTROLS = [
    ("textbox", "Text"),
    ("combobox", "Model"),
    ("combobox", "Voice"),
    ("button", "Speak"),
    ("button", "Stop"),
    ("DisclosureTriangle", "Settings"),
    ("spinbutton", "Speed"),
    ("spinbutton", "Guidance scale"),
    ("spinbutton", "Temperature"),
    ("textbox", "Seed"),
    ("spinbutton", "Longest audio, seconds"),
    ("textbox", "API key"),
    ("image", "Waveform: 2.0 s of audio, loudest at N percent."),
    ("button", "Play again"),
    ("button", "Keep seed"),
    ("button", "Download WAV"),
    ("button", "Copy"),
    ("link", "The API, described"),
]


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with chromium(tmp_path_factory.mktemp("downloads")) as running:
        yield running


@pytest.fixture
def page(chrome: webdriver.Chrome, service: Service) -> Page:
    page = Page(chrome, service.url + "/")
    page.wait_ready()
    return page


def test_it_is_heard_while_it_is_generated(page: Page) -> None:
    page.fill(longest="10")
    page.click("speak")
    page.wait(lambda: page.figure("played") > 0)
    assert page.text("finish") == "\N{EN DASH}"  # the end has not come yet
    page.wait_state("done")

    assert page.figure("received") == pytest.approx(10 * RATE, rel=0.02)
    assert page.figure("played") == page.figure("received")
    assert page.figure("peak") > 0.01
    assert page.figure("underruns") == int(page.text("gaps"))
    assert page.text("finish") == "length"
    assert float(page.text("duration").removesuffix(" s")) == pytest.approx(10, abs=0.2)
    first, factor = float(page.text("first-audio").removesuffix(" s")), float(page.text("rtf"))
    assert 0 < first < 10 * factor


def test_the_curl_command_makes_the_same_audio(page: Page, tmp_path: Path) -> None:
    text = """It's "fine", isn't it? `Tea` costs $5 & that is all."""
    page.say(text=text, voice="slt", seed="11", longest="2")
    command = page.text("curl")
    subprocess.run(["bash", "-ec", command], cwd=tmp_path, check=True, capture_output=True)
    with wave.open(str(tmp_path / "speech.wav")) as file:
        assert file.getframerate() == RATE
        assert file.getnframes() == page.figure("received") > RATE
    assert "slt" in command
    assert page.text("seed-used") == "11"


def test_a_drawn_seed_can_be_kept(page: Page) -> None:
    page.say(longest="0.5")
    drawn = page.text("seed-used")
    page.click("keep-seed")
    page.say()
    assert page.text("seed-used") == drawn == page.element("seed").get_attribute("value")


def test_stop_ends_the_sound_and_the_work(page: Page, stats: Callable[[], dict[str, Any]]) -> None:
    page.fill(longest="60")
    page.click("speak")
    page.wait(lambda: page.figure("played") > 0)
    assert stats()["requests"] == 1
    page.click("stop")
    deadline = time.monotonic() + 1
    assert page.state == "stopped"
    at_once = page.figure("played")
    while stats()["requests"]:
        assert time.monotonic() < deadline
    time.sleep(0.3)
    heard = page.figure("played")
    assert heard - at_once < 0.2 * RATE  # the page may hear late of what was playing just then
    engine = stats()["engine"]
    assert engine["rows_running"] == engine["rows_waiting"] == 0
    time.sleep(0.5)
    assert page.figure("played") == heard < page.figure("received") + 1
    assert page.text("finish") == "stopped"


def test_two_clicks_speak_once(page: Page, stats: Callable[[], dict[str, Any]]) -> None:
    page.fill(longest="1")
    page.chrome.execute_script(
        "const speak = document.getElementById('speak'); speak.click(); speak.click()"
    )
    page.wait_state("done")
    assert page.figure("received") == page.figure("played") == pytest.approx(RATE, rel=0.02)
    page.wait(lambda: not stats()["requests"], 5)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("text", "  ", "is empty"),
        ("speed", "9", "must be at most 4"),
        ("guidance", "-1", "must be"),
        ("temperature", "-2", "must be"),
        ("seed", "-5", "must be"),
        ("longest", "100000", "at most"),
    ],
)
def test_what_cannot_be_is_said_at_its_field(
    page: Page, field: str, value: str, message: str
) -> None:
    page.fill(**{field: value})
    page.click("speak")
    page.wait_state("failed")
    element = page.element(field)
    assert page.focused() == field
    assert element.get_attribute("aria-invalid") == "true"
    assert f"{field}-error" in (element.get_attribute("aria-describedby") or "").split()
    assert message in page.text(f"{field}-error")
    assert page.text("problem") == ""
    element.send_keys("1")
    assert element.get_attribute("aria-invalid") is None
    assert page.text(f"{field}-error") == ""


def test_the_keyboard_is_enough(page: Page) -> None:
    order = []
    for _ in range(13):
        page.press(Keys.TAB)
        order.append(page.focused() or page.chrome.switch_to.active_element.tag_name)
        if order[-1] == "summary":
            page.press(Keys.ENTER)
    assert order == [
        "text", "model", "voice", "speak", "stop", "summary",
        "speed", "guidance", "temperature", "seed", "longest", "key", "again",
    ]  # fmt: skip
    page.element("longest").send_keys("60")
    page.element("text").send_keys("!")
    page.press(Keys.CONTROL, Keys.ENTER)
    page.wait_state("speaking")
    assert page.focused() == "text"
    page.press(Keys.ESCAPE)
    assert page.state == "stopped"
    assert page.text("status") == "Stopped."
    page.element("stop").send_keys(Keys.ENTER)
    assert page.focused() == "stop"  # what cannot be done now keeps its place
    ring = page.element("stop").value_of_css_property("outline-width")
    assert float(ring.removesuffix("px")) >= 2


def test_nothing_is_asked_of_others(page: Page, service: Service) -> None:
    page.say(longest="0.5")
    page.click("download")
    urls = [event["request"]["url"] for event in page.network("Network.requestWillBeSent")]
    assert f"{service.url}/v1/audio/speech" in urls
    others = [
        url for url in urls if not url.startswith((service.url, "data:", "blob:" + service.url))
    ]
    assert others == []
    faults = [entry for entry in page.chrome.get_log("browser") if entry["level"] == "SEVERE"]
    assert [f for f in faults if "400 (Bad Request)" not in f["message"]] == []


def test_a_small_phone_needs_no_sideways_scrolling(page: Page) -> None:
    page.phone()
    page.say(text="Unbreakable" * 30 + ".", longest="0.5")
    page.fill(guidance="-1")
    page.click("speak")
    page.wait_state("failed")
    assert page.chrome.execute_script("return document.documentElement.scrollWidth") == 360
    for element in page.chrome.find_elements(
        By.CSS_SELECTOR, "button, input, select, textarea, summary, a"
    ):
        if element.is_displayed():
            assert element.size["height"] >= 44, element.get_attribute("outerHTML")


def test_a_screen_reader_finds_a_name_for_everything(page: Page) -> None:
    page.say(longest="2")
    found = [(role, re.sub(r"\d+ percent", "N percent", n)) for role, n in page.accessible_names()]
    assert sorted(found) == sorted(CONTROLS)
    for name, role in (("status", "status"), ("readiness", "status"), ("problem", "alert")):
        assert page.element(name).get_attribute("role") == role
    assert page.text("status") == "Finished: 2.0 s of audio."


def test_it_follows_the_colours_of_the_system(page: Page) -> None:
    colours = set()
    for scheme in ("light", "dark"):
        page.chrome.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )
        colours.add(
            page.chrome.find_element(By.TAG_NAME, "body").value_of_css_property("background-color")
        )
    assert len(colours) == 2
