// The page: a scene from the address or the controls is played by the engine, and shown moment by moment.

import init, { Play, lessons as lessonsOf, tables } from "./engine.js";
import { draw } from "./draw.js";
import { Controls, SENDERS } from "./scene.js";
import { showTables } from "./tables.js";
import { Take } from "./take.js";

const $ = (selector) => document.querySelector(selector);
const state = { takes: [], limit: 0, rate: 0, now: 0, end: 1, playing: false, before: 0 };
let lessons = [];
let controls;
let lesson;

function play(query, { keeps = false } = {}) {
  let run;
  try {
    run = new Play(query);
  } catch (wrong) {
    $("#wrong").textContent = String(wrong);
    $("#wrong").hidden = false;
    return false;
  }
  $("#wrong").hidden = true;
  controls.read(run.scene());
  state.limit = run.limit();
  state.rate = Number(new URLSearchParams(run.scene()).get("rate")) / 1e6;
  state.takes = Array.from({ length: run.lanes() }, (_, lane) => new Take(run, lane));
  // Until all who have an end are over; of those who hang, a while.
  const ends = state.takes.map((take) => {
    if (take.sender === "slow-start") return take.whole || take.ends;
    return take.over || Math.min(take.ends, (take.whole || 0) + 3000);
  }).map((end) => end + 20);
  state.end = Math.max(state.limit * 1.1, ...ends);
  run.free();
  const address = new URL(location);
  address.search = `?${controls.write()}${lesson ? `&lesson=${lesson.name}` : ""}`;
  history.replaceState(null, "", address);
  makeLanes();
  seek(keeps ? Math.min(state.now, state.end) : 0);
  return true;
}

function makeLanes() {
  const named = Object.fromEntries(SENDERS);
  $("#lanes").replaceChildren(
    ...state.takes.map((take) => {
      const lane = document.createElement("section");
      lane.className = "lane";
      lane.innerHTML = "<h2></h2><p></p><canvas role='img'></canvas>";
      lane.dataset.sender = take.sender;
      lane.dataset.hash = take.hash;
      lane.querySelector("h2").textContent = named[take.sender];
      return lane;
    }),
  );
}

const seconds = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`);

function says(take) {
  const { sent, again, repair, missing, chunks } = take.counts(state.now);
  const what = take.sender === "fragments" ? `fragments in ${chunks} packets` : "slices";
  const so_far = `${sent} ${what} sent, ${again} again, ${repair} repair, ${missing} lost`;
  const times = (take.whole / state.limit).toFixed(2);
  if (!(take.whole <= state.now)) return `${so_far}`;
  const whole = `whole after ${seconds(take.whole)}, ${times} times the limit`;
  const never = Number.isNaN(take.over) && take.sender !== "slow-start";
  const end = never ? "; the sender never learns it, and goes on" : "";
  return `${whole}${end}: ${so_far}`;
}

function show() {
  document.querySelectorAll(".lane").forEach((lane, i) => {
    const text = says(state.takes[i]);
    lane.querySelector("p").textContent = text;
    lane.querySelector("canvas").setAttribute("aria-label", text);
    draw(lane.querySelector("canvas"), state.takes[i], state);
  });
  $("#time").textContent = `${seconds(state.now)} (limit ${seconds(state.limit)})`;
  $("#scrub").value = (state.now / state.end) * 1000;
}

function seek(now) {
  state.now = Math.max(0, Math.min(now, state.end));
  show();
}

function setPlaying(playing) {
  state.playing = playing;
  state.before = performance.now();
  $("#play").textContent = playing ? "Pause" : "Play";
  if (playing && state.now >= state.end) state.now = 0;
  if (playing) requestAnimationFrame(frame);
}

function frame(time) {
  if (!state.playing) return;
  const speed = Number($("#speed").value);
  seek(state.now + Math.max(0, time - state.before) * speed);
  state.before = time;
  if (state.now >= state.end) setPlaying(false);
  else requestAnimationFrame(frame);
}

// To the next or the last moment at which a datagram is sent or ends.
function step(forward) {
  setPlaying(false);
  const moments = state.takes.flatMap((take) => take.rows.flatMap((row) => [row.sent, row.ends]));
  const others = moments.filter((at) => (forward ? at > state.now + 1e-6 : at < state.now - 1e-6));
  if (others.length > 0) seek(others.reduce((a, b) => (forward ? Math.min(a, b) : Math.max(a, b))));
}

function choose(name, is_switched) {
  lesson = lessons.find((one) => one.name === name);
  $("#lesson").value = lesson?.name ?? "";
  $("#hint").hidden = Boolean(lesson);
  $("#story").hidden = !lesson;
  $("#story").textContent = lesson?.story ?? "";
  $("#switch-row").hidden = !lesson?.switched;
  $("#switch-row span").textContent = lesson?.switch ?? "";
  $("#switch").checked = is_switched;
}

// Whether an address is nearer to the lesson with its switch on: it has the same values, with all defaults said.
function isSwitched(text) {
  if (!text || !lesson.switched) return false;
  const said = new Play(text);
  const switched = new Play(lesson.switched);
  const is_it = said.scene() === switched.scene();
  said.free();
  switched.free();
  return is_it;
}

function playLesson() {
  setPlaying(false);
  if (lesson && play($("#switch").checked ? lesson.switched : lesson.scene)) setPlaying(true);
}

function listen() {
  $("#lesson").addEventListener("change", (event) => {
    choose(event.target.value, false);
    playLesson();
  });
  $("#switch").addEventListener("change", playLesson);
  $("#play").addEventListener("click", () => setPlaying(!state.playing));
  $("#step").addEventListener("click", () => step(true));
  $("#back").addEventListener("click", () => step(false));
  $("#scrub").addEventListener("input", (event) => {
    setPlaying(false);
    seek((Number(event.target.value) / 1000) * state.end);
  });
  $("#share").addEventListener("click", async () => {
    const copied = navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    $("#shared").textContent = (await copied) ? "Copied." : location.href;
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, button, textarea") || event.ctrlKey || event.metaKey) return;
    const act = { " ": () => setPlaying(!state.playing), ArrowRight: () => step(true), ArrowLeft: () => step(false) };
    if (act[event.key]) {
      event.preventDefault();
      act[event.key]();
    }
  });
  // Measured once, when somebody looks.
  $("#tables").addEventListener("toggle", () => showTables($("#tables div"), () => JSON.parse(tables())), { once: true });
  addEventListener("resize", show);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
}

async function start() {
  await init();
  lessons = JSON.parse(lessonsOf());
  lessons.forEach((one) => $("#lesson").append(new Option(one.title, one.name)));
  controls = new Controls($("#controls"), () => {
    choose("", false);
    play(controls.write(), { keeps: true });
  });
  listen();
  const query = new URLSearchParams(location.search);
  const name = query.get("lesson");
  query.delete("lesson");
  choose(name, false);
  const text = query.toString();
  if (lesson) $("#switch").checked = isSwitched(text);
  if (!play(text || lesson?.scene || "")) {
    const wrong = $("#wrong").textContent;
    play("");
    [$("#wrong").textContent, $("#wrong").hidden] = [`${wrong}. This is the usual scene.`, false];
  }
  // `#at=250` stands at that moment, `#at=end` at the end.
  const at = new URLSearchParams(location.hash.slice(1)).get("at");
  if (at === null) setPlaying(true);
  else seek(at === "end" ? state.end : Number(at) || 0);
  document.documentElement.dataset.ready = "yes";
}

start();
