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
  /** For a certificate that nobody has signed: its SHA-256, 32 bytes or 64 hexadecimal digits. A function is
   *  asked again when a session has broken: the certificate may be another by then. */
  certificateHashes?: CertificateHashes | (() => CertificateHashes | Promise<CertificateHashes>);
  /** What the player asks for, up to 400 bytes. It can be replayed, and is not secret. */
  request?: string | Uint8Array;
  /** The largest block that is accepted, in bytes. Default: 64 MiB. */
  maxBlockBytes?: number;
  /** `blocks`, the default: each in one piece, `block`. `chunks`: pieces of 256 KiB in any order, each as
   *  soon as it is verified, `chunk` and at last `complete`. `in-order`: the same, in order. */
  delivery?: 'blocks' | 'chunks' | 'in-order';
  /** Bytes of received blocks that may wait to be read: then the server waits. Default 64 MiB, and with
   *  chunks at least 1.3 MB. */
  maxUnreadBlockBytes?: number;
  /** The highest rate of blocks in either direction, in bit/s. */
  maxRateBps?: number;
  /** How much of the link blocks of the page may take. Default `load-screen`: all. */
  urgency?: Urgency;
  /** Bytes of messages that may wait to be sent or acknowledged on each channel. Default 256 KiB. */
  maxQueuedMessageBytes?: number;
  /** Silence that ends the connection, in ms, also while there is no session. Default 15,000; from 1000. */
  idleTimeoutMs?: number;
  /** How long the server may take to let the player in, in ms. Default 10,000. */
  handshakeTimeoutMs?: number;
  /** Called while the server has no seat: `place` 1 is the next. It is kept if the session breaks. */
  onqueue?: (wait: { place: number | null; estimateMs: number | null }) => void;
  /** Where `engine_bg.wasm` is, if not beside `engine.js`. */
  module?: string | URL | Response | BufferSource | WebAssembly.Module;
}

export type CertificateHashes = (string | Uint8Array)[];

/** `during-play` yields to the game's own packets. */
export type Urgency = 'load-screen' | 'during-play';

export type HaulierEvent =
  /** More of a block has arrived: some twenty times a second. The last is that all of it is here, or
   *  `block` says so. `rateBps` is 0 while it is not known. */
  | { type: 'progress'; tag: bigint; receivedBytes: number; lengthBytes: number; rateBps: number;
      estimateMs: number | null }
  /** The server has a block for the page. It can be declined. */
  | { type: 'announced'; block: number; tag: bigint; lengthBytes: number; digest: Uint8Array }
  /** A block, whole and verified. */
  | { type: 'block'; tag: bigint; data: Uint8Array }
  /** A piece of a block, verified, with `delivery` of chunks. */
  | { type: 'chunk'; block: number; tag: bigint; offsetBytes: number; data: Uint8Array }
  /** All pieces of a block were handed out, or were here before. */
  | { type: 'complete'; block: number; tag: bigint }
  /** The server has a block that the page has already: nothing of it comes. */
  | { type: 'here'; tag: bigint }
  /** The server gave a block up. */
  | { type: 'cancelled'; block: number; tag: bigint; code: number }
  /** A block of the page has arrived, all of it. */
  | { type: 'sent'; handle: number }
  /** The server does not want a block of the page. */
  | { type: 'declined'; handle: number; code: number }
  /** A message: the next in the order of its channel, or an unordered one. */
  | { type: 'message'; channel: number; data: Uint8Array }
  /** A packet of the moment. Sequences wrap after 65,535: `isNewer` compares them. */
  | { type: 'packet'; sequence: number; data: Uint8Array }
  /** A message of the page has arrived: `sendMessage` returned its number. */
  | { type: 'message-acked'; channel: number; number: number }
  /** A packet of the page has arrived, for certain; or, probably, has not. */
  | { type: 'packet-acked' | 'packet-lost'; sequence: number }
  /** The session has broken, and another is opened: the connection goes on, and nothing is lost but time. */
  | { type: 'interrupted'; message: string }
  /** There is another session. */
  | { type: 'resumed' }
  /** A channel that was full has room again. */
  | { type: 'writable'; channel: number }
  /** The last one. A close of the server has its `code` and `reason`. */
  | { type: 'closed'; kind: ErrorKind; message: string; code: number | string | null; reason: string };

export interface Stats {
  rttMs: number;
  receivedBytes: number;
  sentBytes: number;
}

export interface BlockOptions {
  /** The higher goes first. Default 0; up to 255. */
  priority?: number;
  /** The share beside others of the same priority. Default 0: after those that have one. */
  weight?: number;
  /** Default: the connection's. */
  urgency?: Urgency;
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
  /** Sends a block of any size; returns the handle that names it. `tag` says what it is. */
  sendBlock(tag: number | bigint, data: string | BufferSource, options?: BlockOptions): number;
  /** Gives a block of the page up, with a code of its own. Whether it was on its way, as all of these say. */
  cancelBlock(handle: number, code?: number): boolean;
  pauseBlock(handle: number): boolean;
  resumeBlock(handle: number): boolean;
  setBlockPriority(handle: number, priority: number): boolean;
  /** Does not want the rest of a block of the server, with a code of its own. */
  declineBlock(block: number, code?: number): boolean;
  /** The page has the block with this BLAKE3 (32 bytes): should the server send it, nothing of it comes. */
  haveBlock(digest: Uint8Array): boolean;
  /** The page has these chunks of it: bit `i`, from the lowest of each byte on, is the one from byte
   *  `i * 262144`. Only with `delivery` of chunks, and before the server announces the block. */
  haveChunks(digest: Uint8Array, map: Uint8Array): boolean;
  /** The highest rate of the page's blocks, in bit/s. */
  setMaxRateBps(rateBps: number): void;
  setUrgency(urgency: Urgency): void;
  /** Whether all messages and blocks of the page have arrived. */
  readonly allAcked: boolean;
  /** Closes once all of that has arrived, or after this time; resolves with the last event. What comes
   *  meanwhile is not read. */
  finish(timeoutMs?: number): Promise<HaulierEvent>;
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
