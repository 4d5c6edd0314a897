/** WebSockets of coroutines, and webhooks of threads, in a Python worker over bare frames. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DATA_OVERHEAD_BYTES } from '../../../protocol/wire/limits.js';
import { needs } from '../../helpers/needs.js';
import { startedPython } from './python-process.js';
import { ownCode } from './version-sensitive.js';

const OPTIONS = { timeout: 240_000, skip: needs('python3') };
const OWN_CODE = ownCode(OPTIONS);

const APP = `from potassium import Potassium
app = Potassium("chat")
@app.websocket("/chat")
async def chat(context, request):
    ws = request.ws
    while True:
        message = await ws.receive()
        if message is None: print("left", flush=True); return
        if message == "bye": await ws.close(4000, "so long"); return
        await ws.send(message)
`;

test(
  'a WebSocket of an async function gives and takes credit, and its task is cancelled',
  OPTIONS,
  async (t) => {
    const worker = await startedPython(t, APP, {
      limits: { maxOutputBytes: 1_000_000, streamWindowBytes: 1 },
    });
    const connect = (id: number): void =>
      worker.call(id, Buffer.alloc(0), { format: 'websocket', route: '/chat', path: '/chat' });
    const say = (text: string): void =>
      worker.send({ type: 'data', id: 1, text: true, last: true }, Buffer.from(text));
    connect(1);
    assert.equal((await worker.next('credit')).message.bytes, 1);
    assert.equal((await worker.next('waiting')).message.received, 0);
    say('one');
    assert.equal((await worker.next('credit')).message.bytes, 3 + DATA_OVERHEAD_BYTES);
    assert.equal((await worker.next('data')).body.toString(), 'one');
    assert.equal((await worker.next('waiting')).message.received, 1);
    say('waits');
    say('bye');
    worker.send({ type: 'credit', id: 1, bytes: 3 + DATA_OVERHEAD_BYTES });
    assert.equal((await worker.next('data')).body.toString(), 'waits');
    assert.equal((await worker.next('close')).message.code, 4000);
    await worker.next('end');
    connect(2);
    while ((await worker.next('waiting')).message.id !== 2); // call 1 may have waited, too
    worker.send({ type: 'cancel', id: 2, reason: 'the client left' });
    assert.equal((await worker.next('error')).message.code, 'SERVE_CANCELLED');
    worker.send({ type: 'stop', graceMs: 1000 });
    await worker.exit;
    assert.equal(await worker.stdout, '');
  },
);

test('a webhook of a thread goes out by the front, and the thread learns its end', OWN_CODE, async (t) => {
  const worker = await startedPython(
    t,
    `import threading
from banana_worker.run.webhook_handover import offered_webhooks
def inference(model_inputs):
    said = []
    post = lambda: said.append(offered_webhooks().post("https://example.com/hook", b"t", 1000, 0, wait=True))
    thread = threading.Thread(target=post)
    thread.start(); thread.join()
    return said`,
  );
  worker.callJson(1, null);
  const { ref } = (await worker.next('webhook')).message;
  worker.send({ type: 'webhookDone', ref, outcome: 'delivered' });
  assert.deepEqual(await worker.answer(), ['delivered']);
});
