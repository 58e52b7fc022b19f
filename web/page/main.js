// Joins, draws the world, and says what others say.

import { Client, invitation } from './haulier.js';

const [state, bar, canvas, form, text, log] = ['state', 'bar', 'world', 'say', 'text', 'log']
  .map((id) => document.getElementById(id));

async function main() {
  const { url, ticket } = await invitation('invitation.json');
  // Asked anew when a session has broken, for the certificate may be another by then.
  const certificateHashes = async () => (await invitation('invitation.json')).certificateHashes;
  state.textContent = `Asking ${url} …`;
  const began = performance.now();
  const client = await Client.connect(url, ticket, { certificateHashes });
  form.onsubmit = (submitted) => {
    submitted.preventDefault();
    client.sendMessage(text.value);
    text.value = '';
  };
  for await (const event of client) {
    switch (event.type) {
      case 'progress':
        if (event.receivedBytes === event.lengthBytes) break;
        bar.value = event.receivedBytes / event.lengthBytes;
        state.textContent = `${(event.receivedBytes / 1e6).toFixed(1)} of `
          + `${(event.lengthBytes / 1e6).toFixed(1)} MB, ${(event.rateBps / 1e6).toFixed(1)} Mbit/s`;
        break;
      case 'block':
        bar.value = 1;
        draw(event.data);
        state.textContent = `The world is here: ${event.data.length} bytes in `
          + `${Math.round(performance.now() - began)} ms`;
        document.body.dataset.sha256 = await sha256(event.data);
        break;
      case 'message':
        log.textContent += `${new TextDecoder().decode(event.data)}\n`;
        break;
      case 'interrupted':
        state.textContent = 'The way to the server is lost; looking for another …';
        break;
      case 'resumed':
        state.textContent = 'There is a way again';
        break;
      case 'closed':
        state.textContent = `Gone: ${event.message}`;
        document.body.dataset.kind = event.kind;
        break;
    }
  }
}

/** Three bytes for each point. */
function draw(bytes) {
  const context = canvas.getContext('2d');
  const image = context.createImageData(canvas.width, canvas.height);
  for (let from = 0, to = 0; from < bytes.length; from += 3, to += 4) {
    image.data[to] = bytes[from];
    image.data[to + 1] = bytes[from + 1];
    image.data[to + 2] = bytes[from + 2];
    image.data[to + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

main().catch((error) => {
  state.textContent = `${error.kind ?? 'error'}: ${error.message}`;
  document.body.dataset.kind = error.kind ?? 'error';
});
