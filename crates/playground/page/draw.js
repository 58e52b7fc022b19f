// A lane as a picture: the map of slices, the time line of datagrams, and the curves of rate and queue.

import { CELL, colors, drawCell, fit } from "./paint.js";
import { ACK, AGAIN, ARRIVED, DROPPED, HERE, LOST, MADE, REPAIR, REQUEST, SENT, SENT_AGAIN } from "./take.js";

const GAP = 14, LINE = 150, CURVE = 64;

// Everything is drawn for a moment `now`, in a picture of `end` ms.
export function draw(canvas, take, { now, end, limit, rate }) {
  const width = canvas.clientWidth;
  const columns = Math.max(8, Math.floor(width / CELL));
  const map = Math.ceil(take.cells / columns) * CELL;
  const height = map + LINE + CURVE + 3 * GAP;
  const at = fit(canvas, width, height);
  at.font = "12px system-ui, sans-serif";
  const ink = colors();
  const x = (time) => (time / end) * width;
  drawMap(at, take.map(now), columns, ink);
  at.translate(0, map + GAP);
  drawTimeLine(at, take, now, x, width, ink);
  drawLimit(at, x(limit), LINE, ink);
  at.translate(0, LINE + GAP);
  drawCurves(at, take, { now, end, rate }, width, ink);
  drawLimit(at, x(limit), CURVE, ink);
  at.translate(0, -LINE - GAP);
  at.fillStyle = ink.soft;
  at.fillRect(x(now), 0, 1, LINE + GAP + CURVE);
}

function drawMap(at, cells, columns, ink) {
  const fills = { [SENT]: ink.slice, [SENT_AGAIN]: ink.again, [HERE]: ink.slice, [MADE]: ink.repair };
  cells.forEach((state, cell) => {
    const [left, top] = [(cell % columns) * CELL, Math.floor(cell / columns) * CELL];
    // On the way it is a frame, here it is filled.
    drawCell(at, left, top, fills[state] ?? ink.empty, state === SENT || state === SENT_AGAIN);
  });
}

const colorOf = (row, ink) =>
  ({ [REQUEST]: ink.request, [REPAIR]: ink.repair, [AGAIN]: ink.again, [ACK]: ink.ack })[row.kind] ??
  (row.kind > ACK ? ink.ack : ink.slice);

// The server is above, the client below; a datagram is a line from one to the other.
function drawTimeLine(at, take, now, x, width, ink) {
  at.strokeStyle = ink.line;
  at.strokeRect(0.5, 0.5, width - 1, LINE - 1);
  at.globalAlpha = take.rows.length > 3000 ? 0.35 : 0.7;
  for (const row of take.rows) {
    if (row.sent > now) break;
    const ends = Math.min(row.ends, now);
    const part = row.ends > row.sent ? (ends - row.sent) / (row.ends - row.sent) : 1;
    const [from, to] = row.down ? [0, LINE] : [LINE, 0];
    // One that is lost ends halfway, at the link; one that the queue dropped does not begin.
    const reach = row.outcome === ARRIVED ? part : Math.min(part, 0.5);
    const end = from + (to - from) * reach;
    at.strokeStyle = colorOf(row, ink);
    at.beginPath();
    at.moveTo(x(row.sent), from);
    at.lineTo(x(row.sent + (row.ends - row.sent) * reach), end);
    at.stroke();
    const is_gone = (row.outcome === LOST && part >= 0.5) || row.outcome === DROPPED;
    if (is_gone) {
      at.fillStyle = ink.lost;
      const mark = row.outcome === DROPPED ? from + (row.down ? 3 : -5) : end;
      at.fillRect(x(row.sent + (row.ends - row.sent) * reach) - 1.5, mark - 1.5, 3, 3);
    }
  }
  at.globalAlpha = 1;
  at.fillStyle = ink.soft;
  at.fillText("server", 6, 14);
  at.fillText("client", 6, LINE - 6);
}

function drawCurves(at, take, { now, end, rate }, width, ink) {
  const count = Math.max(20, Math.floor(width / 6));
  const curves = take.curves(end, count);
  const shown = Math.floor((now / end) * count);
  const top = rate * 1.15;
  const wait = Math.max(1, ...curves.queue);
  const line = (values, most, color) => {
    at.strokeStyle = color;
    at.lineWidth = 1.5;
    at.beginPath();
    values.slice(0, shown + 1).forEach((value, i) => {
      const y = CURVE - (Math.min(value, most) / most) * CURVE;
      if (i === 0) at.moveTo(0, y);
      else at.lineTo(((i + 0.5) / count) * width, y);
    });
    at.stroke();
    at.lineWidth = 1;
  };
  at.strokeStyle = ink.line;
  at.strokeRect(0.5, 0.5, width - 1, CURVE - 1);
  at.setLineDash([4, 4]);
  at.beginPath();
  at.moveTo(0, CURVE - CURVE / 1.15);
  at.lineTo(width, CURVE - CURVE / 1.15);
  at.stroke();
  at.setLineDash([]);
  line(curves.queue, wait * 1.15, ink.again);
  line(curves.rate, top, ink.slice);
  at.fillStyle = ink.slice;
  at.fillText("arrives, of the link's rate", 6, 14);
  at.fillStyle = ink.again;
  const text = `waits in the queue, at most ${Math.round(Math.max(...curves.queue))} ms`;
  at.fillText(text, 6, 28);
}

function drawLimit(at, left, height, ink) {
  at.fillStyle = ink.limit;
  at.fillRect(left - 1, 0, 2, height);
}
