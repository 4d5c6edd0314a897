/**
 * The timed digits example in a process of its own, without banana-serve: a message on stdin begins a run of the model for
 * all the bodies in it, and the answers go to stdout. A message without bodies is answered with what was noted.
 */
import { writeSync } from 'node:fs';
import type { InferenceContext } from 'banana-serve';
import { joinParts, partsIn } from '../parts.js';
import { inferenceBatch, init, tell } from './digits-timed.js';

type Input = Parameters<typeof inferenceBatch>[0][number];

const CONTEXT = { log: console } as unknown as InferenceContext;

await init();
let unread = Buffer.alloc(0);
process.stdin.on('data', (chunk: Buffer) => {
  unread = unread.length === 0 ? chunk : Buffer.concat([unread, chunk]);
  const bodies = partsIn(unread);
  if (bodies === null) return;
  unread = Buffer.alloc(0); // the next message comes after the answer
  void answer(bodies);
});

async function answer(bodies: readonly Buffer[]): Promise<void> {
  const inputs = bodies.map((body) => JSON.parse(body.toString()) as Input);
  const contexts = inputs.map(() => CONTEXT);
  const outputs = inputs.length === 0 ? [await tell()] : await inferenceBatch(inputs, contexts);
  writeSync(1, joinParts(outputs.map((output) => Buffer.from(JSON.stringify(output)))));
}
