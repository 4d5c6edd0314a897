/** WebSockets and webhooks of a Python worker over bare frames. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  DATA_OVERHEAD_BYTES,
  FIRST_WEBHOOK_REF,
  MAX_FRAGMENT_BYTES,
} from '../../../protocol/wire/messages.js';
import { needs } from '../../helpers/needs.js';
import { startedPython } from './python-process.js';
import { ownCode } from './version-sensitive.js';
import type { WorkerProcess } from './worker-process.js';

const OPTIONS = { timeout: 240_000, skip: needs('python3') };
const OWN_CODE = ownCode(OPTIONS);

const WINDOW = 1000;
const SPEC = { limits: { maxOutputBytes: 1_000_000, streamWindowBytes: WINDOW } };

const app = (kind: 'sync' | 'async'): string => `from potassium import Potassium
app = Potassium("chat")
@app.websocket("/chat")
${kind === 'async' ? 'async ' : ''}def chat(context, request):
    ws = request.ws
    while True:
        message = ${kind === 'async' ? 'await ' : ''}ws.receive()
        if message is None: print("left", flush=True); return
        if message == "bye": ${kind === 'async' ? 'await ' : ''}ws.close(4000, "so long"); return
        ${kind === 'async' ? 'await ' : ''}ws.send(message)
`;

function connect(worker: WorkerProcess, id: number): void {
  worker.call(id, Buffer.alloc(0), { format: 'websocket', route: '/chat', path: '/chat', contentType: '' });
}

function say(worker: WorkerProcess, id: number, text: string, last = true): void {
  worker.send({ type: 'data', id, text: true, last }, Buffer.from(text));
}

for (const kind of ['sync', 'async'] as const) {
  test(
    `a WebSocket of a Python app gives and takes credit, and reports when it waits (${kind})`,
    kind === 'sync' ? OWN_CODE : OPTIONS,
    async (t) => {
      const worker = await startedPython(t, app(kind), SPEC);
      connect(worker, 1);
      assert.deepEqual((await worker.next('credit')).message, { type: 'credit', id: 1, bytes: WINDOW });
      assert.equal((await worker.next('waiting')).message.received, 0);
      say(worker, 1, 'one');
      assert.equal((await worker.next('credit')).message.bytes, 3 + DATA_OVERHEAD_BYTES);
      const { message, body } = await worker.next('data');
      assert.deepEqual([message.text, message.last, body.toString()], [true, true, 'one']);
      assert.equal((await worker.next('waiting')).message.received, 1);
      // A part that is not the last gives its credit back at once; é comes in two parts.
      worker.send({ type: 'data', id: 1, text: true, last: false }, Buffer.from([0xc3]));
      assert.equal((await worker.next('credit')).message.bytes, 1 + DATA_OVERHEAD_BYTES);
      worker.send({ type: 'data', id: 1, text: true, last: true }, Buffer.from([0xa9]));
      assert.equal((await worker.next('data')).body.toString(), 'é');
      worker.send({ type: 'credit', id: 1, bytes: 5 + 2 * DATA_OVERHEAD_BYTES });
      // The credit of the window bounds what is sent: the second answer waits.
      say(worker, 1, 'x'.repeat(2 * WINDOW));
      assert.equal((await worker.next('data')).body.length, 2 * WINDOW);
      say(worker, 1, 'waits');
      say(worker, 1, 'bye');
      worker.send({ type: 'credit', id: 1, bytes: 2 * WINDOW });
      assert.equal((await worker.next('data')).body.toString(), 'waits');
      const { code, reason } = (await worker.next('close')).message;
      assert.deepEqual([code, reason], [4000, 'so long']);
      await worker.next('end');

      connect(worker, 2);
      while ((await worker.next('credit')).message.id !== 2); // before that nothing may be sent
      say(worker, 2, 'y'.repeat(MAX_FRAGMENT_BYTES), false);
      say(worker, 2, 'z');
      assert.equal((await worker.next('data')).body.length, MAX_FRAGMENT_BYTES);
      worker.send({ type: 'cancel', id: 2, reason: 'the client left' });
      assert.equal((await worker.next('error')).message.code, 'SERVE_CANCELLED');
      connect(worker, 3);
      while ((await worker.next('waiting')).message.id !== 3); // call 2 may have waited, too
      worker.send({ type: 'cancel', id: 3, reason: 'the client left' });
      assert.equal((await worker.next('error')).message.code, 'SERVE_CANCELLED');
      worker.send({ type: 'stop', graceMs: 1000 });
      await worker.exit;
      // The task of the async function was cancelled.
      assert.equal((await worker.stdout).endsWith('left\n'), kind === 'sync');
    },
  );
}

test(
  'a webhook goes out by the front, in fragments, also from a thread; a waiting app learns its end',
  OWN_CODE,
  async (t) => {
    const worker = await startedPython(
      t,
      `import threading
from banana_worker.run import webhook_handover
URL = "https://example.com/hook"
def inference(model_inputs):
    if model_inputs == "thread":
        said = []
        thread = threading.Thread(target=lambda: said.append(webhook_handover.post(URL, b"t", wait=True)))
        thread.start(); thread.join()
        return said
    return [webhook_handover.post(URL, bytes(300_000)), webhook_handover.post(URL, b"{}", wait=True, timeout_ms=1500, retries=0)]`,
    );
    worker.callJson(1, null);
    const first = await worker.next('webhook');
    assert.deepEqual(
      [
        first.message.ref,
        first.message.bodyBytes,
        first.body.length,
        first.message.wait,
        first.message.requestId,
      ],
      [FIRST_WEBHOOK_REF, 300_000, MAX_FRAGMENT_BYTES, false, 'r1'],
    );
    assert.equal((await worker.next('body')).body.length, 300_000 - MAX_FRAGMENT_BYTES);
    const second = (await worker.next('webhook')).message;
    assert.deepEqual([second.timeoutMs, second.retries, second.wait], [1500, 0, true]);
    worker.send({ type: 'webhookDone', ref: first.message.ref, outcome: 'taken' });
    worker.send({ type: 'webhookDone', ref: second.ref, outcome: 'failed' });
    assert.deepEqual(await worker.answer(), [null, 'failed']);
    worker.callJson(2, 'thread');
    worker.send({
      type: 'webhookDone',
      ref: (await worker.next('webhook')).message.ref,
      outcome: 'delivered',
    });
    assert.deepEqual(await worker.answer(), ['delivered']);
  },
);
