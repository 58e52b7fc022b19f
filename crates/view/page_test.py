#!/usr/bin/python3
"""A server with fifty clients, looked at as people do: in a browser, in a terminal, and by a monitor.

    /usr/bin/python3 crates/view/page_test.py HAULIER [DIRECTORY]

HAULIER is the program. Pictures go to DIRECTORY. Needs Debian's chromium, chromium-driver, python3-selenium,
python3-prometheus-client and python3-pyte; `cargo xtask ci --only views` runs it.
"""

import fcntl
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Callable, Dict, List

import pyte
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

PROGRAM = Path()
PICTURES = Path()
CLIENTS = 50
# Slow enough that all of them are on their way while they are looked at: 2 MiB take 80 s.
RATE, WORLD_BYTES = "200k", 2 << 20
PATIENCE = 40


def until(what: Callable[[], Any]) -> Any:
    """Waits until something is so, and gives it back."""
    ends = time.monotonic() + PATIENCE
    while not (found := what()):
        if time.monotonic() > ends:
            raise AssertionError("it did not come to that")
        time.sleep(0.05)
    return found


class Console:
    """A program in a terminal of so many lines and columns, and what is on its screen."""

    def __init__(self, command: List[Any], lines: int = 70, columns: int = 140) -> None:
        self.picture, self.said = pyte.Screen(columns, lines), ""
        self.inside = pyte.ByteStream(self.picture)
        self.outer, inner = os.openpty()
        self.inner = inner
        self.before = termios.tcgetattr(inner)
        self.resize(lines, columns)
        self.process = subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner)
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self) -> None:
        while True:
            try:
                read = os.read(self.outer, 65536)
            except OSError:
                return
            self.said += read.decode(errors="replace")
            self.inside.feed(read)

    def resize(self, lines: int, columns: int) -> None:
        self.picture.resize(lines, columns)
        fcntl.ioctl(self.inner, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self.outer, keys.encode())

    def text(self) -> str:
        return "\n".join(self.picture.display)

    def find(self, pattern: str) -> str:
        """What a pattern finds in all that was printed, once it does."""
        return until(lambda: re.search(pattern, self.said)).group(1)

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()
        os.close(self.inner)


class Crowd:
    """A server in a terminal, and fifty clients that fetch from it."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        folder = Path(self.folder.name)
        world = folder / "world.bin"
        world.write_bytes(random.Random(1).randbytes(WORLD_BYTES))
        self.clients: List[subprocess.Popen] = []
        serve = [PROGRAM, "serve", world, "--bind", "127.0.0.1:0", "--rate", RATE]
        self.server = Console([*serve, "--view", "127.0.0.1:0", "--tui"])
        self.ticket = self.server.find(r"(haulier1:[\w-]+)")
        host, port = self.server.find(r" at (127[.\d]+:\d+)").rsplit(":", 1)
        self.at = (host, int(port))
        self.view = self.server.find(r"(http://[.\d:]+/)")
        for number in range(CLIENTS):
            home = folder / f"client-{number}"
            home.mkdir()
            fetch = [PROGRAM, "fetch", self.ticket, "-o", home]
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            self.clients.append(subprocess.Popen(fetch, **quiet))
        # What no client sends.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for size in range(1, 8):
                stranger.sendto(b"\xff" * size, self.at)

    def end(self) -> None:
        for process in self.clients:
            process.terminate()
        for process in self.clients:
            process.wait()
        self.server.end()
        self.folder.cleanup()

    def get(self, path: str) -> Any:
        return urllib.request.urlopen(self.view + path, timeout=PATIENCE)

    def snapshot(self) -> Dict[str, Any]:
        with self.get("snapshot.json") as answer:
            return json.load(answer)


class View(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.crowd = Crowd()
        cls.addClassCleanup(cls.crowd.end)
        cls.profile = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.profile.cleanup)
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
        cls.addClassCleanup(cls.browser.quit)
        until(lambda: cls.busy() == CLIENTS)

    @classmethod
    def busy(cls) -> int:
        """Clients to whom a block is on its way."""
        connections = cls.crowd.snapshot()["connections"]
        return sum(1 for it in connections if it["sending_map"] and it["sent_bps"] > 0)

    def setUp(self) -> None:
        self.browser.set_window_size(1440, 1000)

    def tearDown(self) -> None:
        levels = ("SEVERE", "WARNING")
        faults = [entry for entry in self.browser.get_log("browser") if entry["level"] in levels]
        self.assertEqual(faults, [], "the console is clean")

    def open(self) -> None:
        self.browser.get("about:blank")
        self.browser.get(self.crowd.view)
        ready = "return document.documentElement.dataset.ready === 'yes'"
        WebDriverWait(self.browser, PATIENCE).until(lambda it: it.execute_script(ready))

    def all(self, selector: str) -> List[Any]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return self.browser.find_element(By.CSS_SELECTOR, selector).text

    def picture(self, name: str) -> None:
        # A curve has a width once there are some moments.
        moments = "return document.querySelector('#n-out').textContent !== '0 bit/s'"
        WebDriverWait(self.browser, PATIENCE).until(lambda it: it.execute_script(moments))
        self.browser.save_screenshot(str(PICTURES / f"{name}.png"))

    def test_the_page_shows_fifty(self) -> None:
        self.open()
        WebDriverWait(self.browser, PATIENCE).until(lambda _: len(self.all("tbody tr")) == CLIENTS)
        until(lambda: self.text("#n-out").endswith("Mbit/s"))
        self.assertEqual(self.text("#n-connections"), f"of {CLIENTS} connected")
        self.assertEqual(self.text("#status"), "live")
        self.assertIn("asks for world.bin", self.text("tbody tr"))
        self.assertIn("unknown kind", self.text("#drops"))
        until(lambda: "arrived" in self.text("#map-says"))
        colors = """
            const canvas = document.querySelector('#map');
            const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            return new Set(new Uint32Array(data.buffer)).size;
        """
        self.assertGreater(self.browser.execute_script(colors), 2, "the map has slices")
        time.sleep(4)  # for a picture with curves
        self.picture("live")

    def test_the_keyboard_is_enough(self) -> None:
        self.open()
        until(lambda: len(self.all("tbody tr")) == CLIENTS)
        head = self.all("th button")[3]
        head.send_keys(Keys.ENTER)
        self.assertEqual(self.all("th")[3].get_attribute("aria-sort"), "descending")
        self.all("th button")[0].send_keys(Keys.ENTER)
        before = self.text("#one-name")
        row = self.browser.find_element(By.CSS_SELECTOR, "tbody tr[tabindex='0']")
        row.send_keys(Keys.ARROW_DOWN)
        until(lambda: self.text("#one-name") != before)

    def test_a_phone_is_wide_enough(self) -> None:
        metrics = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        try:
            self.open()
            width = self.browser.execute_script("return document.documentElement.scrollWidth")
            self.assertLessEqual(width, 390)
            time.sleep(2)
            self.picture("live-phone")
        finally:
            self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def test_the_dark_is_dark(self) -> None:
        dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
        try:
            self.open()
            paper = "return getComputedStyle(document.body).backgroundColor"
            self.assertEqual(self.browser.execute_script(paper), "rgb(20, 24, 31)")
            time.sleep(2)
            self.picture("live-dark")
        finally:
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def test_the_terminal_shows_fifty(self) -> None:
        console = self.crowd.server
        until(lambda: f"{CLIENTS} on their way of {CLIENTS} connected" in console.text())
        until(lambda: len(re.findall(r"client \d+ asks for world.bin", console.text())) > CLIENTS)
        self.assertRegex(console.text(), r"7 not used, most: unknown kind")
        self.assertRegex(console.text(), r"chunks \d of 8")
        self.assertIn("█", console.text())
        selected = r"(client \d+) asks for world.bin connected for"
        before = re.search(selected, console.text()).group(1)
        console.press("jj")
        until(lambda: re.search(selected, console.text()).group(1) != before)
        for size in [(3, 20), (1, 1), (70, 140)]:
            console.resize(*size)
            time.sleep(0.3)
        until(lambda: f"{CLIENTS} on their way" in console.text())
        (PICTURES / "terminal.txt").write_text(console.text())

    def test_a_key_ends_it_and_the_terminal_is_as_it_was(self) -> None:
        folder = Path(self.crowd.folder.name) / "one"
        folder.mkdir()
        console = Console([PROGRAM, "fetch", self.crowd.ticket, "-o", folder, "--tui"])
        self.addCleanup(console.end)
        until(lambda: "1 on their way of 1 connected" in console.text())
        self.assertNotEqual(termios.tcgetattr(console.inner)[3], console.before[3], "keys are read")
        console.press("q")
        self.assertEqual(console.process.wait(PATIENCE), 130)
        self.assertEqual(termios.tcgetattr(console.inner), console.before)
        # The others are counted.
        until(lambda: len(self.crowd.snapshot()["connections"]) == CLIENTS)
        until(lambda: "interrupted" in console.said.rsplit("\x1b[?1049l", 1)[-1])

    def test_a_monitor_reads_the_metrics(self) -> None:
        with self.crowd.get("metrics") as answer:
            self.assertIn("application/openmetrics-text; version=1.0.0", answer.headers["Content-Type"])
            families = {it.name: it for it in text_string_to_metric_families(answer.read().decode())}
        value = {name: it.samples[0].value for name, it in families.items()}
        self.assertEqual(value["haulier_connections"], CLIENTS)
        self.assertEqual(value["haulier_transfers"], CLIENTS)
        self.assertGreaterEqual(value["haulier_joins"], CLIENTS)
        self.assertGreater(value["haulier_sent_bytes"], 100_000)
        drops = families["haulier_drops"].samples
        kinds = [it for it in drops if it.labels["reason"] == "unknown_kind"]
        self.assertEqual([it.value for it in kinds], [7])
        self.assertEqual(families["haulier_sent_bytes"].unit, "bytes")

    def test_nothing_but_reading(self) -> None:
        for request, status in [
            (urllib.request.Request(self.crowd.view, data=b"x"), 405),
            (urllib.request.Request(self.crowd.view, headers={"Host": "evil.example"}), 421),
        ]:
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=PATIENCE)
            self.assertEqual(refused.exception.code, status)
            refused.exception.close()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = Path(sys.argv[1]).resolve()
    PICTURES = Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
    signal.alarm(240)  # It hangs otherwise, if something does.
    unittest.main(argv=sys.argv[:1], verbosity=2)
