#!/usr/bin/python3
"""The playground in a real browser, as people use it: by mouse, by keyboard, on a phone.

    /usr/bin/python3 crates/playground/page_test.py HAULIER-LAB [DIRECTORY]

HAULIER-LAB is a program with the page in it (`cargo xtask playground --check` builds one and runs this).
Pictures go to DIRECTORY. Needs Debian's chromium, chromium-driver and python3-selenium.
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Dict, List

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

PROGRAM = Path()
PICTURES = Path()
SCENES = [
    "seed=2",
    "senders=article-paced,slow-start&rate=2M&rtt=50&loss=0&queue=512k&bytes=128k&seed=9",
    "senders=haulier&rate=20M&rtt=80&loss=5&burst=8&jitter=5&bytes=1M&seed=3",
    "senders=article&rate=10M&rtt=100&loss=30&bytes=64k&seed=36&lasts=8000&without=duplicates",
    "senders=fragments,haulier&rate=50M&rtt=20&loss=0.5&queue=1M&without=repair&seed=4",
]


def natively(scene: str) -> List[Dict[str, Any]]:
    """The takes of a scene, by the program itself."""
    command = [PROGRAM, "--json", "playground", "--scene", scene]
    said = subprocess.run(command, capture_output=True, check=True, text=True)
    events = [json.loads(line) for line in said.stdout.splitlines()]
    return [event for event in events if event["event"] == "take"]


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.served = subprocess.Popen(
            [PROGRAM, "--json", "playground", "--bind", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
        )
        assert cls.served.stdout
        cls.address = json.loads(cls.served.stdout.readline())["address"]
        cls.profile = tempfile.TemporaryDirectory()
        options = webdriver.ChromeOptions()
        quiet = ["quic", "background-networking", "component-update", "sync", "gpu"]
        for argument in [f"--disable-{what}" for what in quiet]:
            options.add_argument(argument)
        for argument in ["--headless=new", "--no-sandbox", "--no-first-run"]:
            options.add_argument(argument)
        options.add_argument(f"--user-data-dir={cls.profile.name}")
        options.binary_location = "/usr/bin/chromium"
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.browser.quit()
        cls.served.terminate()
        cls.served.wait()
        assert cls.served.stdout
        cls.served.stdout.close()
        cls.profile.cleanup()

    def setUp(self) -> None:
        self.browser.set_window_size(1280, 1000)

    def tearDown(self) -> None:
        levels = ("SEVERE", "WARNING")
        faults = [entry for entry in self.browser.get_log("browser") if entry["level"] in levels]
        self.assertEqual(faults, [], "the console is clean")

    def open(self, query: str) -> None:
        self.browser.get("about:blank")
        self.browser.get(f"{self.address}{query}")
        ready = "return document.documentElement.dataset.ready === 'yes'"
        WebDriverWait(self.browser, 30).until(lambda browser: browser.execute_script(ready))

    def all(self, selector: str) -> List[Any]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> Any:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def hashes(self) -> List[str]:
        return [lane.get_attribute("data-hash") for lane in self.all(".lane")]

    def time(self) -> str:
        return self.one("#time").text

    def test_it_plays_what_the_program_plays(self) -> None:
        for scene in SCENES:
            self.open(f"?{scene}#at=end")
            takes = natively(scene)
            self.assertEqual(self.hashes(), [take["hash"] for take in takes], scene)
            for lane, take in zip(self.all(".lane"), takes):
                # The model of TCP goes on after the block, and who hangs for longer than is shown.
                if take["over_ms"] is not None:
                    sent = take["sent"] + take["sent_again"] + take["repair"]
                    self.assertIn(f"{sent} ", lane.find_element(By.CSS_SELECTOR, "p").text)

    def test_it_plays_by_itself_and_to_the_end(self) -> None:
        # Ten seconds and more in slow motion, and then one of half a second.
        self.open("?senders=slow-start&rate=1M&rtt=200&loss=0&bytes=128k")
        self.assertEqual(self.one("#play").text, "Pause")
        self.open("?senders=haulier&rate=100M&rtt=10&loss=0&bytes=64k")
        Select(self.one("#speed")).select_by_visible_text("real time")
        WebDriverWait(self.browser, 30).until(lambda _: self.one("#play").text == "Play")
        self.assertIn("whole after", self.one(".lane p").text)

    def test_the_keyboard_is_enough(self) -> None:
        self.open("?seed=2#at=0")
        body = self.one("body")
        self.assertEqual(self.one("#play").text, "Play")
        before = self.time()
        for _ in range(40):
            body.send_keys(Keys.ARROW_RIGHT)
        self.assertNotEqual(self.time(), before)
        body.send_keys(Keys.SPACE)
        self.assertEqual(self.one("#play").text, "Pause")
        body.send_keys(Keys.SPACE)
        rate = self.one("[name=rate]")
        hashes = self.hashes()
        rate.send_keys(Keys.ARROW_RIGHT)
        self.assertNotEqual(self.hashes(), hashes)
        self.assertEqual(rate.get_attribute("aria-valuetext"), "20 Mbit/s")

    def test_a_link_is_the_same_run(self) -> None:
        self.open("?seed=2")
        self.one("[name=loss]").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.one("[name=senders][value=article-paced]").click()
        hashes, link = self.hashes(), self.browser.current_url
        self.assertIn("loss=20", link)
        self.browser.get("about:blank")
        self.browser.get(link)
        WebDriverWait(self.browser, 30).until(lambda _: len(self.all(".lane")) == 4)
        self.assertEqual(self.hashes(), hashes)

    def test_the_lessons_show_what_they_say(self) -> None:
        self.open("#at=0")
        choice = Select(self.one("#lesson"))
        names = [option.get_attribute("value") for option in choice.options]
        self.assertGreater(len(names), 5)
        for name in ["hang-1", "hang-2", "hang-3"]:
            choice.select_by_value(name)
            self.end()
            self.assertNotIn("never learns", self.one(".lane p").text)
            self.one("#switch").click()
            self.end()
            self.assertIn("never learns", self.one(".lane p").text, name)
        self.browser.save_screenshot(str(PICTURES / "lesson.png"))
        choice.select_by_value("repair")
        self.end()
        self.assertNotIn(" 0 repair", self.one(".lane p").text)
        self.one("#switch").click()
        self.end()
        self.assertIn(" 0 repair", self.one(".lane p").text)
        # The link says which of the two it is.
        link = self.browser.current_url
        self.browser.get("about:blank")
        self.browser.get(link)
        WebDriverWait(self.browser, 30).until(lambda _: len(self.all(".lane")) == 1)
        self.assertTrue(self.one("#switch").is_selected())

    def test_the_tables_of_the_articles_are_measured(self) -> None:
        self.open("?seed=2#at=0")
        self.one("#tables summary").click()
        WebDriverWait(self.browser, 60).until(lambda _: len(self.all("#tables table")) == 2)
        text = self.one("#tables").text
        for number in ["92.4 %", "13.1 times", "256 kbit/s 8 s 8."]:
            self.assertIn(number, text)
        self.browser.save_screenshot(str(PICTURES / "tables.png"))

    def end(self) -> None:
        """Moves to the end of the run, as the slider does."""
        script = """
            const scrub = document.querySelector('#scrub');
            scrub.value = 1000;
            scrub.dispatchEvent(new Event('input'));
        """
        self.browser.execute_script(script)

    def test_a_wrong_address_is_told(self) -> None:
        self.open("?rate=fast")
        self.assertEqual(len(self.all(".lane")), 3)
        self.assertIn("rate: bits per second", self.one("#wrong").text)

    def test_a_phone_is_wide_enough(self) -> None:
        metrics = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        try:
            self.open("?seed=2#at=end")
            width = self.browser.execute_script("return document.documentElement.scrollWidth")
            self.assertLessEqual(width, 390)
            self.browser.save_screenshot(str(PICTURES / "phone.png"))
        finally:
            self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def test_there_is_a_picture(self) -> None:
        self.open("?seed=2#at=end")
        self.browser.save_screenshot(str(PICTURES / "playground.png"))
        count = """
            const canvas = document.querySelector('canvas');
            const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            return new Set(new Uint32Array(data.buffer)).size;
        """
        self.assertGreater(self.browser.execute_script(count), 50, "colours")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = Path(sys.argv[1]).resolve()
    PICTURES = Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
    unittest.main(argv=sys.argv[:1], verbosity=2)
