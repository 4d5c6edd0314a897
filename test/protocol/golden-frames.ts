/** The golden frames: bytes that this protocol version means for ever, read by the tests of every language. */
import { readFileSync } from 'node:fs';
import type { Message } from '../../protocol/wire/messages.js';

export interface GoldenFrame {
  readonly name: string;
  readonly from: 'front' | 'worker';
  readonly message: Message;
  readonly body: Buffer;
  /** Prefix, head and body. */
  readonly frame: Buffer;
}

export const GOLDEN_FILE = new URL('../../../test/fixtures/frames/golden.json', import.meta.url);

interface GoldenEntry {
  readonly name: string;
  readonly from: 'front' | 'worker';
  readonly message: Message;
  readonly body: string;
  readonly frame: string;
}

export const GOLDEN: readonly GoldenFrame[] = (
  JSON.parse(readFileSync(GOLDEN_FILE, 'utf8')) as GoldenEntry[]
).map((entry) => ({
  ...entry,
  body: Buffer.from(entry.body, 'hex'),
  frame: Buffer.from(entry.frame, 'hex'),
}));

/** The side that may send each message; the compiler refuses a missing one. */
export const SENDERS: Record<Message['type'], readonly ('front' | 'worker')[]> = {
  start: ['front'],
  call: ['front'],
  body: ['front', 'worker'],
  cancel: ['front'],
  credit: ['front', 'worker'],
  data: ['front', 'worker'],
  waiting: ['worker'],
  close: ['worker'],
  ping: ['front'],
  pong: ['worker'],
  retiring: ['worker'],
  stop: ['front'],
  hello: ['worker'],
  loaded: ['worker'],
  warmUp: ['worker'],
  ready: ['worker'],
  result: ['worker'],
  head: ['worker'],
  progress: ['worker'],
  chunk: ['worker'],
  end: ['worker'],
  error: ['worker'],
  log: ['worker'],
  metrics: ['worker'],
  webhook: ['worker'],
  webhookDone: ['front'],
  fatal: ['worker'],
};
