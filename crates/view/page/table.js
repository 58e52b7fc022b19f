// The table of transfers: sorted as one likes, a row selected by mouse or keyboard. Text is only ever text.

import { drawCurve, fit } from "./paint.js";
import { bytes, delay, percent, rate, since } from "./text.js";

const done = (it) => (it.block ? it.block.done / Math.max(1, it.block.length) : -1);

// Title, class, what is sorted by, what is shown.
const COLUMNS = [
  ["Client", "who", (it) => it.order, null],
  ["Here for", "age", (it) => it.age_ms, (it) => since(it.age_ms)],
  ["Block", "block", done, null],
  ["Rate", "rate", (it) => it.rate, null],
  ["Delay", "delay", (it) => it.rtt_ms ?? -1, (it) => delay(it.rtt_ms)],
  ["Loss", "loss", (it) => it.loss, (it) => percent(it.loss)],
  ["In flight", "flight", (it) => it.datagrams_in_flight, (it) => String(it.datagrams_in_flight)],
  ["Memory", "memory", (it) => it.memory_bytes, (it) => bytes(it.memory_bytes)],
];

const element = (tag, className) => Object.assign(document.createElement(tag), { className });

export class Table {
  constructor(table, onSelect) {
    [this.body, this.onSelect, this.rows, this.selected] = [table.tBodies[0], onSelect, new Map(), null];
    [this.column, this.down] = [0, false];
    const head = table.tHead.insertRow();
    this.heads = COLUMNS.map(([title, className], column) => {
      const [th, button] = [element("th", className), element("button", "")];
      th.scope = "col";
      button.type = "button";
      button.textContent = title;
      button.addEventListener("click", () => this.sortBy(column));
      th.append(button);
      head.append(th);
      return th;
    });
    this.body.addEventListener("click", (event) => this.select(event.target.closest("tr")?.dataset.id));
    this.body.addEventListener("keydown", (event) => this.onKey(event));
    this.showSort();
  }

  sortBy(column) {
    this.down = this.column === column ? !this.down : column > 0;
    this.column = column;
    this.showSort();
    if (this.shown) this.show(this.shown);
  }

  showSort() {
    this.heads.forEach((head, column) => {
      const order = this.down ? "descending" : "ascending";
      head.setAttribute("aria-sort", column === this.column ? order : "none");
    });
  }

  onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    const rows = [...this.body.rows];
    const at = rows.findIndex((row) => row.dataset.id === this.selected);
    if (step === undefined || rows.length === 0) return;
    event.preventDefault();
    const row = rows[Math.max(0, Math.min(rows.length - 1, at + step))];
    this.select(row.dataset.id);
    row.focus();
  }

  select(id) {
    if (id === undefined) return;
    this.selected = id;
    this.mark();
    this.onSelect();
  }

  mark() {
    const rows = [...this.body.rows];
    const known = rows.find((row) => row.dataset.id === this.selected);
    // One of them can be reached by the tab key; the arrows lead to the others.
    rows.forEach((row, i) => {
      row.tabIndex = (known ? row === known : i === 0) ? 0 : -1;
      row.setAttribute("aria-selected", String(row === known));
    });
  }

  show(connections) {
    this.shown = connections;
    const value = COLUMNS[this.column][2];
    const order = [...connections].sort((a, b) => value(a) - value(b) || a.order - b.order);
    if (this.down) order.reverse();
    const rows = order.map((it) => this.row(it));
    const here = new Set(order.map((it) => it.id));
    for (const id of [...this.rows.keys()].filter((id) => !here.has(id))) this.rows.delete(id);
    const is_same = rows.length === this.body.rows.length && rows.every((row, i) => this.body.rows[i] === row.tr);
    if (!is_same) {
      const focused = document.activeElement;
      this.body.replaceChildren(...rows.map((row) => row.tr));
      if (focused?.isConnected && focused.tagName === "TR") focused.focus();
    }
    this.mark();
  }

  row(it) {
    let row = this.rows.get(it.id);
    if (!row) this.rows.set(it.id, (row = makeRow(it)));
    row.name.textContent = it.name || it.address;
    row.address.textContent = it.name ? it.address : "";
    COLUMNS.forEach(([, className, , text]) => {
      if (text) row.tr.querySelector(`.${className}`).textContent = text(it);
    });
    const share = Math.max(0, done(it));
    row.meter.style.width = `${share * 100}%`;
    row.part.textContent = it.block
      ? `${it.is_received ? "↓" : "↑"} ${percent(share)} of ${bytes(it.block.length)}`
      : it.state === "connected" ? "all done" : it.state;
    row.tr.classList.toggle("idle", !it.block);
    row.rate.textContent = rate(it.rate);
    row.history = it.history;
    return row;
  }

  // The small curves, once the rows are where they are.
  draw(ink) {
    for (const { canvas, history } of this.rows.values()) {
      const width = canvas.clientWidth;
      if (width === 0) continue;
      const at = fit(canvas, width, 22);
      const most = Math.max(1, ...history);
      drawCurve(at, history, { count: Math.max(20, history.length), most, width, height: 22, color: ink.slice, isFilled: true });
    }
  }
}

function makeRow(it) {
  const tr = element("tr", "");
  tr.dataset.id = it.id;
  COLUMNS.forEach(([, className]) => tr.append(element("td", className)));
  const cell = (className) => tr.querySelector(`.${className}`);
  const [name, address] = [element("b", ""), element("small", "")];
  cell("who").append(name, address);
  const [bar, meter, part] = [element("div", "bar"), element("div", "meter"), element("small", "")];
  bar.append(meter);
  cell("block").append(bar, part);
  const [canvas, number] = [element("canvas", ""), element("span", "")];
  cell("rate").append(canvas, number);
  return { tr, name, address, meter, part, canvas, rate: number, history: [] };
}
