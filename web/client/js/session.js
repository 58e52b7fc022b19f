// A session of WebTransport: a way for datagrams to the server and back. A connection of haulier's outlives
// it, and goes on by the next.

import { HaulierError } from './error.js';

/** A request has exactly this many bytes, so a datagram must carry them. */
const DATAGRAM_BYTES = 1200;

/** Datagrams that may wait for the page between two rounds: 2 MB, what 100 Mbit/s bring in 160 ms. */
const WAITING_DATAGRAMS = 2048;

/** Opens a session. `certificateHashes` is a list, or a function that gives one. */
export async function openSession(url, certificateHashes) {
  if (typeof WebTransport === 'undefined') {
    const why = globalThis.isSecureContext === false
      ? 'this page is not served by https:// (or from localhost)'
      : 'this browser has none';
    throw new HaulierError('usage', `there is no WebTransport: ${why}`);
  }
  const list = typeof certificateHashes === 'function' ? await certificateHashes() : certificateHashes;
  const transport = transportTo(url, list ?? []);
  try {
    await transport.ready;
  } catch (error) {
    throw new HaulierError('unreachable', `no session with ${url}: ${error.message} Is the server `
      + 'running, is UDP let through, and is the hash that of its certificate of today?');
  }
  const { datagrams } = transport;
  if (datagrams.maxDatagramSize < DATAGRAM_BYTES) {
    transport.close();
    throw new HaulierError('unreachable', `datagrams to ${url} carry ${datagrams.maxDatagramSize} `
      + `bytes, and haulier needs ${DATAGRAM_BYTES}`);
  }
  return new Session(transport);
}

function transportTo(url, hashes) {
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

class Session {
  #transport;
  #writer;
  #reader;
  /** Resolves with the reason once it has ended, by whichever end. */
  ended;

  constructor(transport) {
    const { datagrams } = transport;
    datagrams.incomingHighWaterMark = WAITING_DATAGRAMS;
    datagrams.outgoingHighWaterMark = WAITING_DATAGRAMS;
    this.#transport = transport;
    this.#writer = (datagrams.writable ?? datagrams.createWritable()).getWriter();
    this.#reader = datagrams.readable.getReader();
    this.ended = transport.closed.then(({ reason }) => reason ?? '', (error) => error.message);
  }

  /** What the browser does not take is lost, as on any link. */
  send(datagram) {
    this.#writer.write(datagram).catch(() => {});
  }

  /** Hands each datagram that arrives to `take`, until the session has ended. */
  async receive(take) {
    try {
      for (;;) {
        const { value, done } = await this.#reader.read();
        if (done) return;
        take(value);
      }
    } catch {
      // `ended` says why.
    }
  }

  close() {
    try {
      this.#transport.close();
    } catch {
      // It is closed already.
    }
  }
}

function fromHex(text) {
  const pairs = text.match(/^[0-9a-f]{64}$/i) ? text.match(/../g) : null;
  if (!pairs) throw new HaulierError('usage', 'a hash of a certificate has 64 hexadecimal digits');
  return Uint8Array.from(pairs, (pair) => parseInt(pair, 16));
}
