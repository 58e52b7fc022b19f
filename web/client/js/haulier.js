// The client of haulier for a page or a worker: haulier's machine, compiled to WebAssembly, over datagrams of
// WebTransport. `haulier.d.ts` has the types; the README of `web/` the way there.

import init, { Player, Settings } from './engine.js';
import { HaulierError, asHaulierError } from './error.js';
import { openSession } from './session.js';

export { HaulierError };

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

/** What a page has not read: beyond that the machine keeps it, whose own limits then slow the server. A
 *  chunk has 256 KiB, and the next one is here while it is read. */
const UNREAD_BYTES = 512 << 10;
const UNREAD_EVENTS = 1024;

/** Between two tries to open another session: at first, and at most. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 2000;

/** Numbers among the options of `connect`, which are settings of the machine. */
const NUMBERS = ['maxBlockBytes', 'maxUnreadBlockBytes', 'maxRateBps', 'maxQueuedMessageBytes',
  'idleTimeoutMs', 'handshakeTimeoutMs'];

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
  /** The way to the server; `null` between two. */
  #session = null;
  /** Why the last one ended. */
  #interruption = '';
  #events = [];
  /** Bytes of data in them. */
  #unreadBytes = 0;
  #waiting = [];
  #connected = false;
  #inLine = false;
  #closing = false;
  #finishing = false;
  #ended = null;
  #timer = null;
  #channel = new MessageChannel();
  #roundIsDue = false;
  #opened;
  #end;
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
    const settings = settingsOf(options);
    const request = bytesOf(options.request ?? '');
    this.#player = machine(() => new Player(performance.now(), credentials, request, seed, settings));
    seed.fill(0);
    this.#onqueue = options.onqueue;
    this.#channel.port1.onmessage = () => this.#round();
    let resolve;
    this.#end = { promise: new Promise((it) => { resolve = it; }), resolve };
  }

  async #open(url, { certificateHashes }) {
    const opened = new Promise((resolve, reject) => { this.#opened = { resolve, reject }; });
    // Whoever waits for it hears of it, and nobody does while there is no session.
    opened.catch(() => {});
    const open = () => openSession(url, certificateHashes);
    try {
      this.#use(await open(), open);
    } catch (error) {
      this.#release();
      throw error;
    }
    await opened;
  }

  /** Carries the datagrams by this session, and when it has ended by another. */
  #use(session, open) {
    this.#session = session;
    session.receive((datagram) => {
      if (this.#player === null || this.#session !== session) return;
      this.#player.receive(performance.now(), datagram);
      // Datagrams that wait are read in one turn of the event loop, and one round follows.
      this.#roundSoon();
    });
    session.ended.then((reason) => this.#lost(reason, open));
    if (this.#connected) this.#player.moved();
    this.#round();
  }

  /** The session is over. A player that is in, or in line, goes on by another, until its machine times out. A
   *  welcome in flight is lost: the server sends it to no other address. */
  async #lost(reason, open) {
    this.#session = null;
    this.#interruption = `the session has ended${reason ? `: ${reason}` : ''}`;
    if (!this.#isOpen()) return;
    if (!this.#connected && !this.#inLine) {
      this.#finish({ type: 'closed', kind: 'lost', message: this.#interruption, code: null, reason });
      return this.#release();
    }
    // Nobody reads events yet while the page is in line.
    const tells = this.#connected;
    if (tells) this.#push({ type: 'interrupted', message: this.#interruption });
    for (let pause = FIRST_PAUSE_MS; this.#isOpen(); pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      const session = await open().catch(() => null);
      if (session && this.#isOpen()) {
        if (tells) this.#push({ type: 'resumed' });
        return this.#use(session, open);
      }
      session?.close();
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  #isOpen() {
    return this.#player !== null && !this.#closing && !this.#player.is_closed();
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
    if (this.#finishing && this.#player.all_acked()) this.#closeNow(now, 0, '');
    // Without a session there is nobody to hand it to: it is lost, as on any link.
    this.#player.transmit(now, (datagram) => this.#session?.send(datagram));
    if (this.#ended && this.#player.is_closed()) return this.#release();
    const pause = this.#player.pause(performance.now());
    if (pause < SHORTEST_TIMER_MS) {
      this.#roundSoon();
    } else if (pause < LONGEST_TIMER_MS) {
      this.#timer = setTimeout(() => this.#round(), pause);
    }
  }

  #takeEvents(now) {
    // Events that the page does not read stay in the machine. A page that closes reads no more.
    while (this.#closing || this.#finishing || this.#hasRoom()) {
      const event = this.#player.event(now);
      if (event === undefined) return;
      if (event.type === 'connected') {
        this.#connected = true;
        this.#opened.resolve();
      } else if (event.type === 'queued') {
        this.#inLine = true;
        this.#onqueue?.({ place: event.place, estimateMs: event.estimateMs });
      } else if (event.type === 'closed') {
        return this.#finish(event);
      } else if (!this.#closing && !this.#finishing && !this.#isTooSoon(event, now)) {
        this.#push(event);
      }
    }
  }

  #hasRoom() {
    return this.#unreadBytes < UNREAD_BYTES && this.#events.length < UNREAD_EVENTS;
  }

  /** A block makes progress with each round. What is complete is always reported. */
  #isTooSoon({ type, tag, receivedBytes, lengthBytes }, now) {
    if (type === 'block' || type === 'complete') this.#reported.delete(tag);
    if (type !== 'progress') return false;
    const isTooSoon = receivedBytes < lengthBytes && now - this.#reported.get(tag) < PROGRESS_MS;
    if (!isTooSoon) this.#reported.set(tag, now);
    return isTooSoon;
  }

  #push(event) {
    const waiting = this.#waiting.shift();
    if (waiting) return waiting({ value: event, done: false });
    this.#events.push(event);
    this.#unreadBytes += event.data?.length ?? 0;
  }

  /** The connection has ended: that is the last event. */
  #finish(closed) {
    if (this.#ended) return;
    // The machine has heard nothing for too long: there was no way by which it could.
    const isLost = ['timeout', 'no-answer'].includes(closed.kind) && this.#session === null;
    if (isLost) closed = { ...closed, kind: 'lost', message: `${closed.message}; ${this.#interruption}` };
    this.#ended = closed;
    this.#opened.reject(new HaulierError(closed.kind, closed.message, closed.code));
    this.#push(closed);
    for (const waiting of this.#waiting.splice(0)) waiting({ value: undefined, done: true });
    this.#end.resolve(closed);
  }

  /** Frees what the machine holds, once. */
  #release() {
    if (this.#player === null) return;
    clearTimeout(this.#timer);
    this.#channel.port1.close();
    this.#player.free();
    this.#player = null;
    this.#session?.close();
  }

  /** The next event; `done` after the one of type `closed`. */
  async next() {
    if (this.#events.length > 0) {
      const event = this.#events.shift();
      this.#unreadBytes -= event.data?.length ?? 0;
      // There may be more in the machine, which has room again.
      if (!this.#ended) this.#roundSoon();
      return { value: event, done: false };
    }
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
    const bytes = bytesOf(data);
    whole('channel', channel, 0xff);
    return this.#act((player) => player.send_message(bytes, channel, ordered));
  }

  /** Sends a packet of the moment, which arrives at once or never. */
  sendPacket(data) {
    const bytes = bytesOf(data);
    return this.#act((player) => player.send_packet(bytes));
  }

  /** Sends a block; what comes back names it in events and calls. */
  sendBlock(tag, data, { priority = 0, weight = 0, urgency = '' } = {}) {
    const [number, bytes] = [tagOf(tag), bytesOf(data)];
    whole('priority', priority, 0xff);
    whole('weight', weight, 0xffff);
    return this.#act((player, now) => player.send_block(now, number, bytes, priority, weight, urgency));
  }

  /** Gives a block of this end up. */
  cancelBlock(handle, code = 0) {
    return this.#act((player, now) => player.cancel_block(now, handle, code));
  }

  /** Holds a block of this end back, until `resumeBlock`. */
  pauseBlock(handle) {
    return this.#act((player, now) => player.pause_block(now, handle, true));
  }

  resumeBlock(handle) {
    return this.#act((player, now) => player.pause_block(now, handle, false));
  }

  setBlockPriority(handle, priority) {
    whole('priority', priority, 0xff);
    return this.#act((player, now) => player.set_block_priority(now, handle, priority));
  }

  /** Does not want the rest of a block of the server. */
  declineBlock(block, code = 0) {
    return this.#act((player, now) => player.decline_block(now, block, code));
  }

  /** Says which block is here already, by its BLAKE3: nothing of it is sent. */
  haveBlock(digest) {
    return this.#act((player) => player.have_block(digest));
  }

  /** Says which chunks of a block are here: bit `i`, from the lowest of each byte on, is chunk `i`. */
  haveChunks(digest, map) {
    return this.#act((player) => player.have_chunks(digest, map));
  }

  setMaxRateBps(rateBps) {
    return this.#act((player) => player.set_max_rate_bps(rateBps));
  }

  setUrgency(urgency) {
    return this.#act((player) => player.set_urgency(urgency));
  }

  /** Whether all that was sent with a promise, messages and blocks, has arrived. */
  get allAcked() {
    return this.#player?.all_acked() ?? false;
  }

  /** What is measured: `{ rttMs, receivedBytes, sentBytes }`; `undefined` before and after. */
  get stats() {
    return this.#player?.stats();
  }

  /** Closes the connection, with a code of the application from 256 on. The server hears both. */
  close(code = 0, reason = '') {
    if (this.#player === null || this.#ended || this.#closing) return;
    this.#act((player, now) => this.#closeNow(now, code, reason));
  }

  #closeNow(now, code, reason) {
    this.#player.close(now, code, reason);
    this.#closing = true;
    this.#finishing = false;
    this.#takeEvents(now);
    setTimeout(() => this.#release(), CLOSING_MS);
  }

  /** Closes once everything has arrived, or when the time is over; resolves with the event of the end. What
   *  arrives meanwhile is not read. */
  finish(timeoutMs = 5000) {
    if (!this.#ended && !this.#closing && this.#player !== null) {
      this.#finishing = true;
      setTimeout(() => this.close(), timeoutMs);
      this.#roundSoon();
    }
    return this.#end.promise;
  }

  #act(act) {
    if (this.#player === null) throw new HaulierError('not-open', 'the connection has ended');
    const result = machine(() => act(this.#player, performance.now()));
    this.#roundSoon();
    return result;
  }
}

/** Calls the machine, whose errors become ours. */
function machine(call) {
  try {
    return call();
  } catch (error) {
    throw asHaulierError(error);
  }
}

function settingsOf(options) {
  return machine(() => {
    const settings = new Settings();
    for (const name of NUMBERS) {
      if (options[name] !== undefined) settings.set_number(name, Number(options[name]));
    }
    if (options.delivery !== undefined) settings.set_delivery(String(options.delivery));
    if (options.urgency !== undefined) settings.set_urgency(String(options.urgency));
    return settings;
  });
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

/** A number of JavaScript that WebAssembly would cut off otherwise. */
function whole(name, value, max) {
  if (!Number.isInteger(value) || value < 0 || value > max) {
    throw new HaulierError('usage', `${name} is a whole number up to ${max}, not ${value}`);
  }
}

function tagOf(tag) {
  if (typeof tag === 'bigint' ? tag >= 0n && tag < 1n << 64n : Number.isSafeInteger(tag) && tag >= 0) {
    return BigInt(tag);
  }
  throw new HaulierError('usage', `a tag is a whole number from 0 on, not ${tag}`);
}
