// The client of haulier for a page or a worker: haulier's machine, compiled to WebAssembly, over the datagrams
// of WebTransport. `haulier.d.ts` has the types; the README of `web/` the way there.

import init, { Player } from './engine.js';

/** A request has exactly this many bytes, so a datagram must carry them. */
const DATAGRAM_BYTES = 1200;

/** Datagrams that may wait between two rounds: 2 MB, what 100 Mbit/s bring in 160 ms. */
const WAITING_DATAGRAMS = 2048;

/** Below this, timers of browsers are too coarse: the wait is for the next turn of the event loop. */
const SHORTEST_TIMER_MS = 1;

/** The longest that a timer counts. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Sequences of packets have 16 bits, and wrap. */
const HALF_A_TURN = 1 << 15;

/** Between two reports of a block's progress: a bar need not be drawn more often. */
const PROGRESS_MS = 50;

/** How long the close may take to be answered. */
const CLOSING_MS = 2000;

/** What went wrong. `kind` is one of the words of docs/ENGINES.md. */
export class HaulierError extends Error {
  constructor(kind, message, code = null) {
    super(message);
    this.name = 'HaulierError';
    this.kind = kind;
    this.code = code;
  }
}

/** Whether packet `a` was sent after packet `b`: it is less than half a turn ahead. */
export function isNewer(a, b) {
  const ahead = (a - b) & 0xffff;
  return (ahead > 0 && ahead < HALF_A_TURN) || (ahead === HALF_A_TURN && a > b);
}

let engine;

/** Loads the machine; `connect` does it too. `source`: where it is, if not beside this module. */
export function load(source) {
  engine ??= init(source === undefined ? undefined : { module_or_path: source });
  return engine;
}

/** The `fetch` of what a server tells a page: `{ url, certificateHashes, ticket }`. */
export async function invitation(at) {
  let answer;
  try {
    answer = await fetch(at, { cache: 'no-store' });
  } catch (error) {
    throw new HaulierError('unreachable', `${at}: ${error.message}`);
  }
  if (!answer.ok) throw new HaulierError('unreachable', `${at}: HTTP ${answer.status}`);
  return answer.json();
}

/** A connection to a server. Events come by `for await`; the calls never wait. */
export class Client {
  #player;
  #transport;
  #writer;
  #events = [];
  #waiting = [];
  #ended = null;
  #timer = null;
  #channel = new MessageChannel();
  #roundIsDue = false;
  #opened;
  #onqueue;
  /** When the progress of a block was reported last. */
  #reported = new Map();

  /** Resolves once the server has let the player in. */
  static async connect(url, credentials, options = {}) {
    await load(options.module);
    const client = new Client(credentials, options);
    await client.#open(url, options);
    return client;
  }

  constructor(credentials, options) {
    const seed = crypto.getRandomValues(new Uint8Array(32));
    try {
      this.#player = new Player(
        performance.now(),
        credentials,
        bytesOf(options.request ?? ''),
        seed,
        options.maxBlockBytes ?? Infinity,
        options.maxRateBps ?? Infinity,
      );
    } catch (error) {
      throw asHaulierError(error);
    } finally {
      seed.fill(0);
    }
    this.#onqueue = options.onqueue;
    this.#channel.port1.onmessage = () => this.#round();
  }

  async #open(url, options) {
    if (typeof WebTransport === 'undefined') {
      const why = globalThis.isSecureContext === false
        ? 'this page is not served by https:// (or from localhost)'
        : 'this browser has none';
      throw new HaulierError('usage', `there is no WebTransport: ${why}`);
    }
    this.#transport = this.#session(url, options.certificateHashes ?? []);
    try {
      await this.#transport.ready;
    } catch (error) {
      throw new HaulierError('unreachable', `no session with ${url}: ${error.message} Is the server `
        + 'running, is UDP let through, and is the hash that of its certificate of today?');
    }
    const { datagrams } = this.#transport;
    if (datagrams.maxDatagramSize < DATAGRAM_BYTES) {
      this.#transport.close();
      throw new HaulierError('unreachable', `datagrams to ${url} carry ${datagrams.maxDatagramSize} `
        + `bytes, and haulier needs ${DATAGRAM_BYTES}`);
    }
    datagrams.incomingHighWaterMark = WAITING_DATAGRAMS;
    datagrams.outgoingHighWaterMark = WAITING_DATAGRAMS;
    this.#writer = (datagrams.writable ?? datagrams.createWritable()).getWriter();
    const opened = new Promise((resolve, reject) => { this.#opened = { resolve, reject }; });
    this.#receive(datagrams.readable.getReader());
    this.#transport.closed.then(
      ({ reason }) => this.#lost(reason),
      (error) => this.#lost(error.message),
    );
    this.#round();
    await opened;
  }

  #session(url, hashes) {
    const options = { requireUnreliable: true, congestionControl: 'low-latency' };
    if (hashes.length > 0) {
      options.serverCertificateHashes = hashes.map((hash) => ({
        algorithm: 'sha-256',
        value: typeof hash === 'string' ? fromHex(hash) : hash,
      }));
    }
    try {
      return new WebTransport(url, options);
    } catch (error) {
      throw new HaulierError('usage', `${url}: ${error.message}`);
    }
  }

  /** Datagrams that wait are read in one turn of the event loop, and one round follows. */
  async #receive(reader) {
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done || this.#player === null) return;
        this.#player.receive(performance.now(), value);
        this.#roundSoon();
      }
    } catch {
      // `closed` says why.
    }
  }

  #roundSoon() {
    if (!this.#roundIsDue) {
      this.#roundIsDue = true;
      this.#channel.port2.postMessage(null);
    }
  }

  /** The whole loop of the machine: time, events, datagrams, and when to come back. */
  #round() {
    this.#roundIsDue = false;
    clearTimeout(this.#timer);
    if (this.#player === null) return;
    const now = performance.now();
    this.#player.wake(now);
    this.#takeEvents(now);
    this.#player.transmit(now, (datagram) => {
      // What the browser does not take is lost, as on any link.
      this.#writer.write(datagram).catch(() => {});
    });
    if (this.#player.is_closed()) return this.#release();
    const pause = this.#player.pause(performance.now());
    if (pause < SHORTEST_TIMER_MS) {
      this.#roundSoon();
    } else if (pause < LONGEST_TIMER_MS) {
      this.#timer = setTimeout(() => this.#round(), pause);
    }
  }

  #takeEvents(now) {
    for (;;) {
      const event = this.#player.event(now);
      if (event === undefined) return;
      if (event.type === 'connected') {
        this.#opened.resolve();
      } else if (event.type === 'queued') {
        this.#onqueue?.({ place: event.place, estimateMs: event.estimateMs });
      } else if (event.type === 'closed') {
        this.#finish(event);
      } else if (!this.#isTooSoon(event, now)) {
        this.#push(event);
      }
    }
  }

  /** A block makes progress with each round. What is complete is always reported. */
  #isTooSoon({ type, tag, receivedBytes, lengthBytes }, now) {
    if (type !== 'progress') return false;
    const isTooSoon = receivedBytes < lengthBytes && now - this.#reported.get(tag) < PROGRESS_MS;
    if (!isTooSoon) this.#reported.set(tag, now);
    return isTooSoon;
  }

  #push(event) {
    const waiting = this.#waiting.shift();
    if (waiting) waiting({ value: event, done: false });
    else this.#events.push(event);
  }

  /** The connection has ended: that is the last event. */
  #finish(closed) {
    if (this.#ended) return;
    this.#ended = closed;
    this.#opened.reject(new HaulierError(closed.kind, closed.message, closed.code));
    this.#push(closed);
    for (const waiting of this.#waiting.splice(0)) waiting({ value: undefined, done: true });
  }

  /** The session is over, and with it the way to the server. */
  #lost(reason) {
    if (this.#player === null) return;
    const message = `the session has ended${reason ? `: ${reason}` : ''}`;
    this.#finish({ type: 'closed', kind: 'lost', message, code: null, reason: reason ?? '' });
    this.#release();
  }

  /** Frees what the machine holds, once. */
  #release() {
    if (this.#player === null) return;
    clearTimeout(this.#timer);
    this.#channel.port1.close();
    this.#player.free();
    this.#player = null;
    try {
      this.#transport.close();
    } catch {
      // It is closed already.
    }
  }

  /** The next event; `done` after the one of type `closed`. */
  async next() {
    if (this.#events.length > 0) return { value: this.#events.shift(), done: false };
    if (this.#ended) return { value: undefined, done: true };
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Ends a `for await` that is left: the connection stays open, and may be read on. */
  async return() {
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** Sends a message, a string or bytes, which arrives, once. */
  sendMessage(data, { channel = 0, ordered = true } = {}) {
    return this.#act((player) => player.send_message(bytesOf(data), channel, ordered));
  }

  /** Sends a packet of the moment, which arrives at once or never. */
  sendPacket(data) {
    return this.#act((player) => player.send_packet(bytesOf(data)));
  }

  /** What is measured: `{ rttMs, receivedBytes, sentBytes }`; `undefined` before and after. */
  get stats() {
    return this.#player?.stats();
  }

  /** Closes the connection, with a code of the application from 256 on. The server hears both. */
  close(code = 0, reason = '') {
    if (this.#player === null || this.#ended) return;
    this.#act((player) => player.close(performance.now(), code, reason));
    setTimeout(() => this.#release(), CLOSING_MS);
  }

  #act(act) {
    if (this.#player === null) throw new HaulierError('not-open', 'the connection has ended');
    try {
      const result = act(this.#player);
      this.#roundSoon();
      return result;
    } catch (error) {
      throw asHaulierError(error);
    }
  }
}

function bytesOf(data) {
  if (typeof data === 'string') return new TextEncoder().encode(data);
  if (data instanceof Uint8Array) return data;
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) {
    return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  }
  throw new HaulierError('usage', 'data is a string, a typed array or an ArrayBuffer');
}

function fromHex(text) {
  const pairs = text.match(/^[0-9a-f]{64}$/i) ? text.match(/../g) : null;
  if (!pairs) throw new HaulierError('usage', 'a hash of a certificate has 64 hexadecimal digits');
  return Uint8Array.from(pairs, (pair) => parseInt(pair, 16));
}

function asHaulierError(error) {
  return error.kind ? new HaulierError(error.kind, error.message) : error;
}
