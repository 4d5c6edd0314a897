/** A worker in any language answers a body that is larger than one frame. */
import assert from 'node:assert/strict';
import { BodyAssembler, joinPieces } from '../../../protocol/wire/body-assembler.js';
import { MAX_FRAGMENT_BYTES } from '../../../protocol/wire/limits.js';
import type { WorkerProcess } from './worker-process.js';

/** Sends ten megabytes to a worker whose app answers with its input, and gets them back in fragments. */
export async function assertEchoesTenMegabytes(worker: WorkerProcess): Promise<void> {
  const body = Buffer.alloc(10_000_000);
  for (let i = 0; i + 4 <= body.length; i += 4) body.writeUInt32LE(i, i);
  worker.call(1, body, { format: 'bytes' });
  const first = await worker.next('result');
  const assembler = new BodyAssembler<null>();
  let whole = assembler.start(1, null, first.message.bodyBytes, [first.body]);
  while (whole === null) {
    const fragment = await worker.next('body');
    assert.ok(fragment.body.length <= MAX_FRAGMENT_BYTES);
    whole = assembler.add(1, [fragment.body])?.pieces ?? null;
  }
  assert.ok(joinPieces(whole).equals(body));
}
