/** What went wrong, in one word: docs/ENGINES.md of haulier says what helps. */
export type ErrorKind =
  | 'usage' | 'credentials' | 'unreachable' | 'no-answer' | 'refused' | 'timeout'
  | 'closed' | 'lost' | 'not-open' | 'full' | 'io' | 'internal';

export class HaulierError extends Error {
  readonly kind: ErrorKind;
  /** Of a close its number, of a refusal its words. */
  readonly code: number | string | null;
}

/** What a server tells a page, as JSON. */
export interface Invitation {
  /** Of the WebTransport server: `https://host:port/`. */
  url: string;
  /** SHA-256 of a certificate that nobody has signed, in hexadecimal digits. It changes every few days. */
  certificateHashes: string[];
  /** A ticket or a connect token. */
  ticket: string;
}

export interface ConnectOptions {
  /** For a certificate that nobody has signed: its SHA-256, 32 bytes or 64 hexadecimal digits. */
  certificateHashes?: (string | Uint8Array)[];
  /** What the player asks for, up to 400 bytes. It can be replayed, and is not secret. */
  request?: string | Uint8Array;
  /** The largest block that is accepted, in bytes. Default: as the machine's, 1 GiB. */
  maxBlockBytes?: number;
  /** The highest rate of blocks in either direction, in bit/s. */
  maxRateBps?: number;
  /** Called while the server has no seat: `place` 1 is the next. */
  onqueue?: (wait: { place: number | null; estimateMs: number | null }) => void;
  /** Where `engine_bg.wasm` is, if not beside `engine.js`. */
  module?: string | URL | Response | BufferSource | WebAssembly.Module;
}

export type HaulierEvent =
  /** More of a block has arrived: some twenty times a second. The last is that all of it is here, or
   *  `block` says so. `rateBps` is 0 while it is not known. */
  | { type: 'progress'; tag: bigint; receivedBytes: number; lengthBytes: number; rateBps: number;
      estimateMs: number | null }
  /** A block, whole and verified. */
  | { type: 'block'; tag: bigint; data: Uint8Array }
  /** The server gave a block up. */
  | { type: 'cancelled'; tag: bigint; code: number }
  /** A message: the next in the order of its channel, or an unordered one. */
  | { type: 'message'; channel: number; data: Uint8Array }
  /** A packet of the moment. Sequences wrap after 65,535: `isNewer` compares them. */
  | { type: 'packet'; sequence: number; data: Uint8Array }
  /** A channel that was full has room again. */
  | { type: 'writable'; channel: number }
  /** The last one. A close of the server has its `code` and `reason`. */
  | { type: 'closed'; kind: ErrorKind; message: string; code: number | string | null; reason: string };

export interface Stats {
  rttMs: number;
  receivedBytes: number;
  sentBytes: number;
}

export class Client implements AsyncIterableIterator<HaulierEvent> {
  /**
   * Joins. Resolves once the server has let the player in; rejects with a `HaulierError`.
   * `credentials` is a ticket (`haulier1:...`) or a connect token (`haulier-token1:...`).
   */
  static connect(url: string, credentials: string, options?: ConnectOptions): Promise<Client>;

  /** The next event. `for await (const event of client)` is the usual way. */
  next(): Promise<IteratorResult<HaulierEvent>>;
  return(): Promise<IteratorResult<HaulierEvent>>;
  [Symbol.asyncIterator](): AsyncIterableIterator<HaulierEvent>;

  /** Sends a message of up to 64 KiB; returns its number. It arrives, once. */
  sendMessage(data: string | BufferSource, options?: { channel?: number; ordered?: boolean }): number;
  /** Sends a packet of up to 256 KiB; returns its sequence. It arrives at once or never. */
  sendPacket(data: string | BufferSource): number;
  /** Closes the connection: without a code it is done; codes of an application begin at 256. */
  close(code?: number, reason?: string): void;
  readonly stats: Stats | undefined;
}

/** Whether packet `a` was sent after packet `b`, by their sequences. A number comes again after 65,536
 *  packets, so `a > b` is wrong once in a while: 18 minutes at 60 a second. */
export function isNewer(a: number, b: number): boolean;

/** Loads the WebAssembly ahead of time. `connect` does it too. */
export function load(source?: ConnectOptions['module']): Promise<unknown>;

/** Fetches what a server tells a page. */
export function invitation(url: string | URL): Promise<Invitation>;
