"""Chromium, with its driver, to open pages in tests."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import numpy as np
from PIL import Image

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")

OPTIONS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=900,1000",
]


class Browser:
    """A page in Chromium."""

    def __init__(self, profile: Path) -> None:
        from selenium import webdriver

        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for option in (*OPTIONS, f"--user-data-dir={profile}"):
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
        self.driver.set_script_timeout(120)

    def open(self, address: str) -> None:
        from selenium.webdriver.support.ui import WebDriverWait

        self.errors()
        self.driver.get(address)
        WebDriverWait(self.driver, 120).until(lambda driver: self.state() != "loading")

    def state(self) -> str:
        return self.run("return document.documentElement.dataset.state")

    def run(self, script: str, *arguments: object) -> object:
        return self.driver.execute_script(script, *arguments)

    def click(self, selector: str) -> None:
        self.run("document.querySelector(arguments[0]).click()", selector)

    def press(self, *keys: str) -> None:
        self.driver.find_element("id", "canvas").send_keys(*keys)

    def picture(self) -> np.ndarray:
        """Return a screenshot of the canvas after pending drawing is done."""
        self.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
        content = self.driver.find_element("id", "stage").screenshot_as_png
        return np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).astype(int)

    def errors(self) -> list[str]:
        """Return the errors on the console since the last call, without the one about slow screenshots."""
        return [each["message"] for each in self.driver.get_log("browser") if "ReadPixels" not in each["message"]]
