#!/usr/bin/python3
"""A page as a player, in headless Chromium, beside native players, over WebTransport.

    /usr/bin/python3 web/page_test.py TRIAL SITE

TRIAL is the example of `web/server`, SITE the directory with the page: `cargo xtask ci --only web` builds
both and runs this. Needs Debian's chromium, chromium-driver and python3-selenium.
"""

import hashlib
import json
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Dict, List

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

TRIAL = Path()
SITE = Path()
BYTES = 400_000

# Every call of the tests begins with this. `take(client, until)` reads events until one is found.
PRELUDE = """
const [trial, done] = given;
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
const text = (bytes) => new TextDecoder().decode(bytes);
const { Client, invitation, isNewer, HaulierError } = await import('./haulier.js');
const { url, certificateHashes, ticket } = trial.invitation;
async function take(client, found) {
  const events = [];
  for (;;) {
    const { value, done } = await client.next();
    if (done) return events;
    events.push(value);
    if (found(value)) return events;
  }
}
"""


def world(count: int) -> bytes:
    return bytes((n * 2_654_435_761 % 2**32) >> 24 for n in range(count))


def browser() -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    for what in ["background-networking", "component-update", "sync", "gpu"]:
        options.add_argument(f"--disable-{what}")
    for argument in ["--headless=new", "--no-sandbox", "--no-first-run"]:
        options.add_argument(argument)
    options.binary_location = "/usr/bin/chromium"
    driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    driver.set_script_timeout(60)
    return driver


class Trial:
    """The server of a test, over a link or none."""

    def __init__(self, link: str = "none", count: int = BYTES, seed: int = 1, more: str = "") -> None:
        command = [str(TRIAL), str(SITE), link, str(count), str(seed), *more.split()]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.told = self.line()

    def line(self) -> Dict[str, Any]:
        assert self.process.stdout
        told: Dict[str, Any] = json.loads(self.process.stdout.readline())
        return told

    def command(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            pipe.close()
        self.process.wait()


def play(driver: webdriver.Chrome, trial: Trial, script: str) -> Any:
    """Runs `script` in the page; what it hands to `done` comes back."""
    failed = "({ kind, message }) => given[1]({ kind: kind ?? 'error', message: String(message) })"
    body = f"const given = arguments; (async () => {{{PRELUDE}{script}}})().catch({failed})"
    return driver.execute_async_script(body, trial.told)


class Page(unittest.TestCase):
    driver: webdriver.Chrome

    @classmethod
    def setUpClass(cls) -> None:
        cls.driver = browser()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.driver.quit()

    def open(
        self, link: str = "none", count: int = BYTES, page: str = "invitation.json", more: str = ""
    ) -> Trial:
        """A page of the site that does nothing by itself: a file is shown as one."""
        trial = Trial(link, count, more=more)
        self.addCleanup(trial.end)
        self.driver.get(trial.told["site"] + page)
        return trial

    def test_the_page_of_the_example_draws_the_world(self) -> None:
        trial = self.open(page="")
        sha = "return document.body.dataset.sha256 ?? document.body.dataset.kind ?? null"
        for _ in range(600):
            found = self.driver.execute_script(sha)
            if found:
                break
            self.driver.execute_async_script("setTimeout(arguments[0], 50)")
        self.assertEqual(found, hashlib.sha256(world(BYTES)).hexdigest())

    def test_it_joins_beside_a_native_player_and_both_hear_what_is_said(self) -> None:
        trial = self.open()
        trial.command("native")
        self.assertIn("native_ms", trial.line())
        got = play(self.driver, trial, """
          const client = await Client.connect(url, ticket, { certificateHashes });
          const joined = await take(client, ({ type }) => type === 'block');
          const { data, tag } = joined.at(-1);
          const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', data));
          client.sendMessage('hello, ünï');
          const [message] = (await take(client, ({ type }) => type === 'message')).slice(-1);
          client.sendMessage(new Uint8Array(60000).fill(9), { channel: 3, ordered: false });
          const of3 = ({ type, channel }) => type === 'message' && channel === 3;
          const [large] = (await take(client, of3)).slice(-1);
          client.sendPacket('now');
          const [packet] = (await take(client, ({ type }) => type === 'packet')).slice(-1);
          const stats = client.stats;
          client.close(300, 'enough');
          const [closed] = (await take(client, ({ type }) => type === 'closed')).slice(-1);
          const after = await client.next();
          let refused = null;
          try { client.sendMessage('late'); } catch (error) { refused = error.kind; }
          const progress = joined.filter(({ type }) => type === 'progress');
          done({ sha: hex(digest), tag: String(tag), message: text(message.data), packet: text(packet.data),
            large: large.data.length, stats, kind: closed.kind, after: after.done, refused,
            progress: progress.some(({ lengthBytes }) => lengthBytes === data.length) });
        """)
        self.assertEqual(got.get("sha"), hashlib.sha256(world(BYTES)).hexdigest(), got)
        self.assertEqual((got["tag"], got["message"], got["packet"]), ("1", "hello, ünï", "now"))
        self.assertEqual((got["large"], got["kind"], got["after"]), (60000, "closed", True))
        self.assertTrue(got["progress"])
        self.assertIn(got["refused"], ["not-open"])
        self.assertGreater(got["stats"]["receivedBytes"], BYTES)

    def test_a_token_lets_it_in_once_and_each_refusal_has_its_kind(self) -> None:
        trial = self.open()
        join = """
          const tries = [];
          const { token, expired, wrong } = trial;
          for (const credentials of [token, token, expired, wrong, 'haulier1:nonsense']) {
            try {
              const client = await Client.connect(url, credentials, { certificateHashes });
              const [{ type }] = (await take(client, ({ type }) => type === 'block')).slice(-1);
              tries.push(type);
              client.close();
            } catch (error) {
              tries.push(error instanceof HaulierError ? error.kind : String(error));
            }
          }
          done(tries);
        """
        got = play(self.driver, trial, join)
        self.assertEqual(got, ["block", "refused", "refused", "refused", "credentials"])

    def test_what_is_wrong_with_the_way_there_is_said(self) -> None:
        trial = self.open()
        got = play(self.driver, trial, """
          const tries = [];
          for (const [at, hashes] of [
            [url, ['00'.repeat(32)]], [url, ['nonsense']], ['http://x', []],
            ['https://127.0.0.1:1/', certificateHashes],
          ]) {
            try {
              await Client.connect(at, ticket, { certificateHashes: hashes });
              tries.push('joined');
            } catch (error) {
              tries.push(error.kind);
            }
          }
          done(tries);
        """)
        self.assertEqual(got, ["unreachable", "usage", "usage", "unreachable"])

    def test_a_close_has_its_reason_and_a_server_that_goes_away_is_reported(self) -> None:
        trial = self.open()
        start = """
          const client = await Client.connect(url, ticket, { certificateHashes, idleTimeoutMs: 2000 });
          await take(client, ({ type }) => type === 'block');
          window.ended = take(client, ({ type }) => type === 'closed').then((events) => events.at(-1));
          done(true);
        """
        end = "const { kind, code, reason } = await window.ended; done({ kind, code, reason });"
        self.assertIs(play(self.driver, trial, start), True)
        trial.command("close")
        got = play(self.driver, trial, end)
        self.assertEqual(got, {"kind": "closed", "code": 300, "reason": "kicked"})
        self.assertIs(play(self.driver, trial, start), True)
        trial.command("gone")
        got = play(self.driver, trial, end)
        self.assertEqual(got["kind"], "lost")

    def test_a_new_certificate_is_used_and_its_hash_is_told(self) -> None:
        trial = self.open()
        before = trial.told["invitation"]["certificateHashes"]
        trial.command("renew")
        got: List[str] = before
        for _ in range(200):
            got = play(self.driver, trial, "done((await invitation('invitation.json')).certificateHashes);")
            if got != before:
                break
        self.assertNotEqual(got, before)
        trial.told["invitation"]["certificateHashes"] = got
        joined = play(self.driver, trial, """
          const client = await Client.connect(url, ticket, { certificateHashes });
          const [{ data }] = (await take(client, ({ type }) => type === 'block')).slice(-1);
          client.close();
          done(data.length);
        """)
        self.assertEqual(joined, BYTES)

    def test_a_session_that_breaks_in_the_middle_of_a_join_is_followed_by_another(self) -> None:
        trial = self.open("cable", 3_000_000)
        start = """
          const hashes = async () => (await invitation('invitation.json')).certificateHashes;
          const client = await Client.connect(url, ticket, { certificateHashes: hashes });
          const begun = await take(client, ({ type, receivedBytes }) => receivedBytes > 100_000);
          window.rest = take(client, ({ type }) => type === 'block' || type === 'closed');
          window.client = client;
          done(begun.at(-1).receivedBytes < begun.at(-1).lengthBytes / 2);
        """
        self.assertIs(play(self.driver, trial, start), True)
        trial.command("restart")
        self.assertEqual(trial.line(), {"restarted": True})
        got = play(self.driver, trial, """
          const rest = await window.rest;
          const { data } = rest.at(-1);
          const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', data));
          window.client.sendMessage('still me');
          const [message] = (await take(window.client, ({ type }) => type === 'message')).slice(-1);
          window.client.close();
          const types = rest.map(({ type }) => type);
          done({ types: [...new Set(types)], sha: hex(digest), text: text(message.data) });
        """)
        self.assertEqual(got.get("sha"), hashlib.sha256(world(3_000_000)).hexdigest(), got)
        self.assertEqual(got["text"], "still me")
        order = [kind for kind in got["types"] if kind != "progress"]
        self.assertEqual(order, ["interrupted", "resumed", "block"])

    def test_who_waits_in_line_keeps_the_place_when_its_session_breaks(self) -> None:
        trial = self.open(more="one-seat")
        waits = play(self.driver, trial, """
          const hashes = async () => (await invitation('invitation.json')).certificateHashes;
          window.first = await Client.connect(url, ticket, { certificateHashes: hashes });
          await take(window.first, ({ type }) => type === 'block');
          const place = await new Promise((onqueue) => {
            const options = { certificateHashes: hashes, onqueue };
            window.second = Client.connect(url, ticket, options).catch((error) => error);
          });
          done(place.place);
        """)
        self.assertEqual(waits, 1)
        trial.command("restart")
        self.assertEqual(trial.line(), {"restarted": True})
        got = play(self.driver, trial, """
          const seen = await take(window.first, ({ type }) => type === 'resumed');
          window.first.close();
          const client = await window.second;
          if (!(client instanceof Client)) throw client;
          const [{ type, data }] = (await take(client, ({ type }) => type === 'block')).slice(-1);
          client.close();
          done({ seen: seen.map(({ type }) => type), type, length: data.length });
        """)
        self.assertEqual(got, {"seen": ["interrupted", "resumed"], "type": "block", "length": BYTES})

    def test_who_waits_in_line_hears_that_the_server_has_gone(self) -> None:
        trial = self.open(more="one-seat")
        waits = play(self.driver, trial, """
          window.first = await Client.connect(url, ticket, { certificateHashes });
          const place = await new Promise((onqueue) => {
            const options = { certificateHashes, onqueue, handshakeTimeoutMs: 1000 };
            window.second = Client.connect(url, ticket, options).catch(({ kind }) => kind);
          });
          done(place.place);
        """)
        self.assertEqual(waits, 1)
        trial.command("gone")
        self.assertEqual(play(self.driver, trial, "done(await window.second);"), "lost")

    def test_blocks_go_both_ways_and_either_end_may_decline_or_have_them(self) -> None:
        trial = self.open(count=1000)
        got = play(self.driver, trial, """
          const client = await Client.connect(url, ticket, { certificateHashes });
          await take(client, ({ type }) => type === 'block');
          const sent = new Uint8Array(300_000).map((_, n) => n * 7 >> 3);
          const handle = client.sendBlock(12, sent, { priority: 3, urgency: 'during-play' });
          const there = [];
          // Both come in either order.
          while (!['sent', 'block'].every((type) => there.some((event) => event.type === type))) {
            there.push((await client.next()).value);
          }
          const of = (type) => there.find((event) => event.type === type);
          const same = of('block').data.every((byte, n) => byte === sent[n]);
          const { digest } = of('announced');
          client.haveBlock(digest);
          client.sendBlock(15n, sent);
          const here = (await take(client, ({ type }) => type === 'here')).at(-1);
          const unwanted = client.sendBlock(13, sent);
          const declined = (await take(client, ({ type }) => type === 'declined')).at(-1);
          const words = [];
          for (const wrong of [() => client.sendBlock(-1, sent), () => client.sendBlock(1.5, sent),
            () => client.sendBlock(1, sent, { urgency: 'soon' }), () => client.haveBlock(sent),
            () => client.sendMessage('', { channel: 256 })]) {
            try { wrong(); words.push('nothing'); } catch (error) { words.push(error.kind); }
          }
          client.sendBlock(16, new Uint8Array(700_000));
          const last = (await take(client, ({ type, tag }) => type === 'announced' && tag === 16n)).at(-1);
          const refuses = client.declineBlock(last.block, 9);
          done({ sent: of('sent').handle === handle, same, here: String(here.tag), refuses, words,
            declined: declined.handle === unwanted && declined.code, digest: digest.length });
        """)
        self.assertEqual(trial.line(), {"declined": 9}, got)
        self.assertEqual(got, {
            "sent": True, "same": True, "here": "15", "declined": 4, "digest": 32, "refuses": True,
            "words": ["usage"] * 5,
        })

    def test_a_world_comes_in_chunks_and_waits_for_a_page_that_reads_late(self) -> None:
        count = 6_000_000
        trial = self.open(count=count)
        got = play(self.driver, trial, """
          const options = { certificateHashes, delivery: 'in-order', maxUnreadBlockBytes: 1_400_000 };
          const client = await Client.connect(url, ticket, options);
          const whole = new Uint8Array(6_000_000);
          let at = 0;
          const keep = ({ type, offsetBytes, data }) => {
            if (type !== 'chunk') return type === 'complete';
            if (offsetBytes !== at) throw new Error(`${offsetBytes} after ${at}`);
            whole.set(data, offsetBytes);
            at += data.length;
            return false;
          };
          await take(client, (event) => keep(event) || at > 0);
          // Nobody reads, until nothing more comes.
          let before = -1;
          while (client.stats.receivedBytes !== before) {
            before = client.stats.receivedBytes;
            await new Promise((resolve) => setTimeout(resolve, 300));
          }
          await take(client, keep);
          const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', whole));
          client.close();
          done({ sha: hex(digest), before });
        """)
        self.assertEqual(got.get("sha"), hashlib.sha256(world(count)).hexdigest(), got)
        self.assertLess(got["before"], count / 2)

    def test_who_finishes_has_been_heard(self) -> None:
        trial = self.open("mobile", count=1000)
        got = play(self.driver, trial, """
          const client = await Client.connect(url, ticket, { certificateHashes });
          for (let n = 0; n < 4; n += 1) client.sendMessage(new Uint8Array(50_000), { channel: 9 });
          const before = client.allAcked;
          const { kind } = await client.finish(30_000);
          done({ before, kind, again: (await client.finish()).kind });
        """)
        self.assertEqual(got, {"before": False, "kind": "closed", "again": "closed"})
        trial.command("heard")
        self.assertEqual(trial.line(), {"heard_bytes": 200_000})

    def test_messages_and_packets_of_a_page_are_acknowledged(self) -> None:
        trial = self.open(count=1000)
        got = play(self.driver, trial, """
          const client = await Client.connect(url, ticket, { certificateHashes });
          const number = client.sendMessage('one', { channel: 2 });
          const message = (await take(client, ({ type }) => type === 'message-acked')).at(-1);
          const sequence = client.sendPacket('two');
          const packet = (await take(client, ({ type }) => type === 'packet-acked')).at(-1);
          const wrong = [];
          for (const options of [{ delivery: 'heaps' }, { maxRateBps: -1 }, { maxRateBps: 5 },
            { idleTimeoutMs: 'long' }]) {
            try {
              await Client.connect(url, ticket, { certificateHashes, ...options });
            } catch (error) {
              wrong.push(error.kind);
            }
          }
          done({ message: message.number === number && message.channel, wrong,
            packet: packet.sequence === sequence });
        """)
        self.assertEqual(got, {"message": 2, "packet": True, "wrong": ["usage"] * 4})

    def test_a_newer_packet_is_known_also_where_sequences_wrap(self) -> None:
        trial = self.open()
        pairs = [[1, 0], [0, 1], [7, 7], [3, 65535], [65535, 3], [32768, 0], [0, 32768]]
        got = play(self.driver, trial, f"done({pairs}.map(([a, b]) => isNewer(a, b)));")
        self.assertEqual(got, [True, False, False, True, False, True, False])

    def test_progress_is_reported_as_often_as_a_bar_is_drawn(self) -> None:
        trial = self.open("mobile", 1_000_000)
        got = play(self.driver, trial, """
          const began = performance.now();
          const client = await Client.connect(url, ticket, { certificateHashes });
          const events = await take(client, ({ type }) => type === 'block');
          const progress = events.filter(({ type }) => type === 'progress');
          client.close();
          done([progress.length, performance.now() - began]);
        """)
        count, took_ms = got
        self.assertGreater(count, 1)
        self.assertLessEqual(count, took_ms / 50 + 2)

    def test_it_joins_over_a_link_that_loses_and_delays(self) -> None:
        trial = self.open("mobile", 150_000)
        got = play(self.driver, trial, """
          const client = await Client.connect(url, ticket, { certificateHashes });
          const [{ data }] = (await take(client, ({ type }) => type === 'block')).slice(-1);
          const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', data));
          client.close();
          done(hex(digest));
        """)
        self.assertEqual(got, hashlib.sha256(world(150_000)).hexdigest())


if __name__ == "__main__":
    TRIAL, SITE = Path(sys.argv[1]), Path(sys.argv[2])
    unittest.main(argv=sys.argv[:1], verbosity=2)
