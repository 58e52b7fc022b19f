// The live view: snapshots come four times a second, and are drawn as they come.

import { CELL, colors, drawCell, drawCurve, fit } from "./paint.js";
import { Table } from "./table.js";
import { bytes, count, delay, percent, rate, since } from "./text.js";

const $ = (selector) => document.querySelector(selector);
const MOMENTS = 240; // a minute
const ROW_MOMENTS = 60;
const RETRY_MS = 2000;

const histories = new Map();
const whole = { sent: [], received: [] };
const table = new Table($("#transfers"), () => newest && showOne(colors()));
let newest;

const keep = (list, value, most) => {
  list.push(value);
  if (list.length > most) list.shift();
};

function take(snapshot) {
  const { connections } = snapshot;
  keep(whole.sent, snapshot.sent_bps, MOMENTS);
  keep(whole.received, snapshot.received_bps, MOMENTS);
  connections.forEach((it, order) => {
    it.order = order;
    it.is_received = !it.sending && Boolean(it.receiving);
    it.block = it.sending ?? it.receiving;
    it.map = it.sending_map ?? it.receiving_map;
    it.rate = Math.max(it.sent_bps, it.received_bps);
    if (!histories.has(it.id)) histories.set(it.id, []);
    it.history = histories.get(it.id);
    keep(it.history, it.rate, ROW_MOMENTS);
  });
  const here = new Set(connections.map((it) => it.id));
  for (const id of [...histories.keys()].filter((id) => !here.has(id))) histories.delete(id);
  if (!here.has(table.selected)) table.selected = (connections.find((it) => it.block) ?? connections[0])?.id ?? null;
  newest = snapshot;
  show();
}

function show() {
  if (!newest) return;
  const ink = colors();
  showWhole(ink);
  table.show(newest.connections);
  $("#none").hidden = newest.connections.length > 0;
  $("#unlisted").hidden = newest.unlisted === 0;
  $("#unlisted").textContent = `and ${count(newest.unlisted)} more, who are in the totals alone`;
  table.draw(ink);
  showOne(ink);
  showDrops();
  document.documentElement.dataset.ready = "yes";
}

function showWhole(ink) {
  const { totals, connections, end, address } = newest;
  const busy = connections.filter((it) => it.block);
  const mean = (of) => busy.reduce((sum, it) => sum + of(it), 0) / Math.max(1, busy.length);
  $("#where").textContent = end === "server" ? `server at ${address}` : `client of ${address}`;
  document.title = `haulier: ${end} ${address}`;
  text("#n-transfers", count(busy.length));
  text("#n-connections", `of ${count(totals.connections)} connected`);
  text("#n-line", totals.in_line > 0 ? `${count(totals.in_line)} wait in line` : "nobody in line");
  text("#n-out", rate(newest.sent_bps));
  text("#n-in", rate(newest.received_bps));
  text("#n-bytes-out", `${bytes(totals.bytes_sent)} in all`);
  text("#n-bytes-in", `${bytes(totals.bytes_received)} in all`);
  text("#n-rtt", busy.length ? delay(mean((it) => it.rtt_ms ?? 0)) : delay(newest.rtt.count ? newest.rtt.mean_ms : null));
  text("#n-join", newest.join.count ? `${count(newest.join.count)} joined in ${delay(newest.join.mean_ms)}` : "none joined yet");
  text("#n-loss", percent(mean((it) => it.loss)));
  text("#n-lost", `${count(totals.datagrams_lost)} datagrams lost`);
  text("#n-memory", bytes(totals.memory_bytes));
  text("#n-slices", `${count(totals.slices_sent)} slices, ${count(totals.repair_slices_sent)} repair, ${count(totals.slices_resent)} again`);
  for (const [name, color] of [["sent", ink.slice], ["received", ink.repair]]) {
    const canvas = $(`#curve-${name}`);
    const [width, height] = [canvas.clientWidth, 44];
    const most = Math.max(1, ...whole[name]) * 1.05;
    drawCurve(fit(canvas, width, height), whole[name], { count: Math.max(40, whole[name].length), most, width, height, color, isFilled: true });
  }
}

const text = (selector, value) => ($(selector).textContent = value);

function showOne(ink) {
  const it = newest.connections.find((one) => one.id === table.selected);
  $("#one").hidden = !it;
  if (!it) return;
  text("#one-name", it.name || it.address);
  text("#one-state", `${it.name ? `${it.address}, ` : ""}${it.state} for ${since(it.age_ms)}`);
  const curve = $("#one-curve");
  const most = Math.max(1, ...it.history) * 1.05;
  const [width, height] = [curve.clientWidth, 60];
  drawCurve(fit(curve, width, height), it.history, { count: Math.max(20, it.history.length), most, width, height, color: ink.slice, isFilled: true });
  showMap(it.map, ink);
  const facts = [
    ["Rate", rate(it.rate)],
    ["The path has", rate(it.bandwidth_bps)],
    ["Round trip", `${delay(it.rtt_ms)}, at least ${delay(it.min_rtt_ms)}`],
    ["Loss", `${percent(it.loss)}, ${count(it.datagrams_lost)} datagrams`],
    ["In flight", `${count(it.datagrams_in_flight)} datagrams`],
    ["Slices sent", `${count(it.slices_sent)}: ${count(it.repair_slices_sent)} repair, ${count(it.slices_resent)} again`],
    ["Sent", bytes(it.bytes_sent)],
    ["Received", bytes(it.bytes_received)],
    ["Memory", bytes(it.memory_bytes)],
    ["Cipher", it.suite ?? "none: open"],
  ];
  $("#one-facts").replaceChildren(
    ...facts.flatMap(([name, value]) => {
      const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
      [dt.textContent, dd.textContent] = [name, value];
      return [dt, dd];
    }),
  );
}

// Above each chunk of the block, below the slices of the first chunks that are on their way.
function showMap(map, ink) {
  const canvas = $("#map");
  canvas.hidden = !map;
  text("#map-says", mapSays(map));
  canvas.setAttribute("aria-label", mapSays(map));
  if (!map) return;
  const width = canvas.clientWidth;
  const columns = Math.max(8, Math.floor(width / CELL));
  const chunks = Math.min(map.chunks, columns * 3);
  const lines = (cells) => Math.ceil(cells / columns);
  const gap = 8;
  const chunkLines = map.chunks > 1 ? lines(chunks) * CELL + gap : 0;
  const height = chunkLines + map.open.reduce((sum, it) => sum + lines(it.slices.length) * CELL + gap, 0);
  const at = fit(canvas, width, Math.max(height, CELL));
  const cell = (i, top, color, isFrame) =>
    drawCell(at, (i % columns) * CELL, top + Math.floor(i / columns) * CELL, color, isFrame);
  if (map.chunks > 1) {
    const [ahead, open] = [new Set(map.done_ahead), new Set(map.open.map((it) => it.index))];
    for (let i = 0; i < chunks; i++) {
      // One cell may stand for many chunks of a large block: for the first of them.
      const index = Math.floor((i * map.chunks) / chunks);
      const isDone = index < map.first || ahead.has(index);
      cell(i, 0, isDone || open.has(index) ? ink.repair : ink.empty, !isDone && open.has(index));
    }
  }
  let top = chunkLines;
  for (const chunk of map.open) {
    [...chunk.slices].forEach((state, i) => {
      const color = { a: ink.slice, s: ink.slice, m: ink.lost }[state] ?? ink.empty;
      cell(i, top, color, state === "s");
    });
    top += lines(chunk.slices.length) * CELL + gap;
  }
}

function mapSays(map) {
  if (!map) return "No block is on its way.";
  const all = map.open.map((it) => it.slices).join("");
  const of = (letter) => [...all].filter((it) => it === letter).length;
  const repairs = map.open.reduce((sum, it) => sum + it.repairs_arrived, 0);
  const chunks = map.chunks > 1 ? `${count(map.first + map.done_ahead.length)} of ${count(map.chunks)} chunks done. ` : "";
  const more = map.open_chunks > map.open.length ? ` of the first ${map.open.length} of ${map.open_chunks} open chunks` : "";
  return `${chunks}Slices${more}: ${of("a")} arrived, ${of("s")} on their way, ${of("m")} missing, ${repairs} replaced by repair slices.`;
}

function showDrops() {
  const drops = Object.entries(newest.drops).sort((a, b) => b[1] - a[1]);
  const most = Math.max(1, ...drops.map(([, number]) => number));
  $("#no-drops").hidden = drops.length > 0;
  $("#drops").replaceChildren(
    ...drops.map(([reason, number]) => {
      const item = document.createElement("li");
      const [name, value, bar] = ["span", "b", "i"].map((tag) => document.createElement(tag));
      name.textContent = reason.replaceAll("_", " ");
      value.textContent = count(number);
      bar.style.width = `${(number / most) * 100}%`;
      item.append(name, value, bar);
      return item;
    }),
  );
}

function say(status, words) {
  document.documentElement.dataset.live = status;
  text("#status", words);
}

function connect() {
  const events = new EventSource("events");
  events.addEventListener("message", (event) => {
    say("yes", "live");
    take(JSON.parse(event.data));
  });
  events.addEventListener("error", () => {
    say("no", "gone: trying again");
    // By itself it tries again only after some kinds of errors.
    events.close();
    setTimeout(connect, RETRY_MS);
  });
}

addEventListener("resize", show);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
connect();
