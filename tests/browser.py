"""The page in a headless Chromium."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service as DriverService
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select

_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--autoplay-policy=no-user-gesture-required",
    "--window-size=1200,900",
)


@contextmanager
def chromium(downloads: Path) -> Iterator[webdriver.Chrome]:
    """A browser that saves files in ``downloads``.

    Where there is none the test is skipped, unless ``CI=true``: there it must not be missed.
    """
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        missing = "chromium and chromedriver are needed"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=DriverService(driver))
    try:
        yield chrome
    finally:
        chrome.quit()


class Page:
    """The page at ``/``, as somebody uses it."""

    def __init__(self, chrome: webdriver.Chrome, url: str) -> None:
        self.chrome = chrome
        self.url = url
        chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        chrome.get(url)
        chrome.execute_script("sessionStorage.clear()")
        chrome.get(url)
        self._log: list[dict[str, Any]] = []
        chrome.get_log("performance")  # what was before is dropped

    def element(self, name: str) -> WebElement:
        return self.chrome.find_element(By.ID, name)

    def text(self, name: str) -> str:
        return self.element(name).text

    def focused(self) -> str:
        return self.chrome.switch_to.active_element.get_attribute("id") or ""

    def press(self, *keys: str) -> None:
        """Keys pressed at once, for whatever has the focus."""
        self.chrome.switch_to.active_element.send_keys("".join(keys) + Keys.NULL)

    def click(self, name: str) -> None:
        self.element(name).click()

    def fill(self, **fields: str) -> None:
        """Writes into fields, those of the settings included."""
        if not self.element("settings").get_attribute("open"):
            self.chrome.find_element(By.TAG_NAME, "summary").click()
        for name, value in fields.items():
            element = self.element(name)
            if element.tag_name == "select":
                Select(element).select_by_visible_text(value)
            else:
                element.clear()
                element.send_keys(value)

    def options(self, name: str) -> list[str]:
        return [option.text for option in Select(self.element(name)).options]

    @property
    def state(self) -> str:
        return self.element("sound").get_attribute("data-state") or ""

    def figure(self, name: str) -> float:
        """``received``, ``played`` (samples), ``peak`` (0 to 1) or ``underruns``."""
        return float(self.element("sound").get_attribute(f"data-{name}") or "nan")

    def wait(self, condition: Callable[[], object], seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, (self.state, self.text("problem"))
            time.sleep(0.03)

    def wait_ready(self) -> None:
        self.wait(lambda: self.text("readiness") == "Ready")

    def wait_state(self, *states: str) -> None:
        self.wait(lambda: self.state in states)

    def say(self, **fields: str) -> None:
        """Has a text spoken to its end."""
        self.fill(**fields)
        self.click("speak")
        self.wait_state("done")

    def network(self, method: str) -> list[dict[str, Any]]:
        """Parameters of the events of this kind since the page was opened."""
        entries = self.chrome.get_log("performance")
        self._log += [json.loads(entry["message"])["message"] for entry in entries]
        return [event["params"] for event in self._log if event["method"] == method]

    def phone(self) -> None:
        """The screen of a small phone."""
        self.chrome.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True},
        )

    def accessible_names(self) -> list[tuple[str, str]]:
        """Role and name of everything that can be operated, and of images."""
        roles = [
            "button",
            "combobox",
            "DisclosureTriangle",
            "image",
            "link",
            "spinbutton",
            "textbox",
        ]
        nodes = self.chrome.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in nodes
            if not node["ignored"] and node["role"]["value"] in roles
        ]
