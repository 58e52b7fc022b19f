// A take as the engine gives it, and what is true of it at a moment: everything is computed from its rows.

const COLUMNS = 9;
export const ARRIVED = 0, DROPPED = 1, LOST = 2;
export const REQUEST = 0, SLICE = 1, REPAIR = 2, AGAIN = 3, ACK = 4;

// The states of a cell of the map.
export const WAITING = 0, SENT = 1, SENT_AGAIN = 2, HERE = 3, MADE = 4;

export class Take {
  constructor(play, lane) {
    this.sender = play.sender(lane);
    this.whole = play.whole(lane);
    this.over = play.over(lane);
    this.hash = play.hash(lane);
    this.slices = [...play.slices(lane)];
    const numbers = play.rows(lane);
    this.rows = [];
    for (let at = 0; at < numbers.length; at += COLUMNS) {
      const [sent, ends, outcome, kind, down, chunk, index, bytes, waited] = numbers.slice(at, at + COLUMNS);
      this.rows.push({ sent, ends, outcome, kind, down: down === 1, chunk, index, bytes, waited });
    }
    this.first = [];
    this.slices.reduce((sum, count, chunk) => ((this.first[chunk] = sum), sum + count), 0);
    this.cells = this.slices.reduce((sum, count) => sum + count, 0);
    this.ends = Math.max(0, ...this.rows.map((row) => row.ends));
  }

  // The state of each slice at a moment, in order; a chunk that has as many slices as it needs is whole.
  map(now) {
    const cells = new Uint8Array(this.cells);
    const enough = this.slices.map(() => new Set());
    for (const row of this.rows) {
      if (row.sent > now) break;
      if (!row.down || row.kind < SLICE || row.kind > AGAIN || row.chunk >= this.slices.length) continue;
      const is_here = row.outcome === ARRIVED && row.ends <= now;
      if (is_here) enough[row.chunk].add(row.kind === REPAIR ? -1 - row.index : row.index);
      if (row.kind === REPAIR) continue;
      const cell = this.first[row.chunk] + row.index;
      if (is_here) cells[cell] = HERE;
      else if (cells[cell] < HERE) cells[cell] = row.kind === AGAIN ? SENT_AGAIN : SENT;
    }
    this.slices.forEach((count, chunk) => {
      if (enough[chunk].size < count) return;
      for (let cell = this.first[chunk]; cell < this.first[chunk] + count; cell++) {
        if (cells[cell] !== HERE) cells[cell] = MADE;
      }
    });
    return cells;
  }

  // Bytes that arrived in each of `count` parts of the time up to `end`, as Mbit/s, and the longest wait in the
  // queue in each, in ms.
  curves(end, count) {
    const [rate, queue] = [new Float64Array(count), new Float64Array(count)];
    const part = (time) => Math.min(count - 1, Math.floor((time / end) * count));
    for (const row of this.rows) {
      if (!row.down || row.sent > end) continue;
      queue[part(row.sent)] = Math.max(queue[part(row.sent)], row.waited);
      if (row.outcome === ARRIVED && row.ends <= end) rate[part(row.ends)] += row.bytes;
    }
    return { rate: rate.map((bytes) => (bytes * 8) / ((end / count) * 1000)), queue };
  }

  // What has happened up to a moment.
  counts(now) {
    const counts = { sent: 0, again: 0, repair: 0, missing: 0, chunks: 0 };
    for (const row of this.rows) {
      if (row.sent > now) break;
      if (!row.down || row.kind < SLICE || row.kind > AGAIN) continue;
      counts.sent += 1;
      counts.chunks = Math.max(counts.chunks, row.chunk + 1);
      counts.again += row.kind === AGAIN;
      counts.repair += row.kind === REPAIR;
      counts.missing += row.outcome !== ARRIVED && row.outcome < 3;
    }
    return counts;
  }
}
