/** A model whose workers its clients can occupy: with a stream without an end, and with a silent WebSocket. */
import { Potassium, Response } from 'banana-serve/potassium';
import { inference } from './small.mjs';

const app = new Potassium('holds-workers');
app.handler('/', (_context, request) => new Response({ json: inference(request.json) }));
app.handler('/stream', () => new Response({ body: endless() }));
app.websocket('/chat', async (_context, request) => {
  for await (const message of request.ws) await request.ws.send(message);
});

function* endless() {
  const block = new Uint8Array(16_384).fill(97);
  for (;;) yield block;
}

export default app;
