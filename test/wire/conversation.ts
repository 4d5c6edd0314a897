/**
 * A conversation on the wire: what the front sends to a worker, and everything that comes back, in this order. The test is
 * the front, and the worker is a program behind real pipes. `docs/wire.md` is the text to these tests.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { MONOTONIC_OFFSET_MS } from '../../protocol/wire/begun-note.js';
import { MAX_FRAGMENT_BYTES } from '../../protocol/wire/limits.js';
import type { Call, Message, StartSpec } from '../../protocol/wire/messages.js';
import { callWith } from '../worker/calls.js';
import type { Exit, WorkerProcess } from '../processes/worker/worker-process.js';
import { APPS } from './apps.js';

export interface Conversation {
  /** The promise of the worker. */
  readonly title: string;
  readonly app: keyof typeof APPS;
  readonly spec?: Partial<StartSpec>;
  /** From the first frame until calls may come; left out: as every app starts. */
  readonly start?: readonly Step[];
  /** Behind them, if the worker has not exited, the front sends `stop`, and the worker says nothing more. */
  readonly steps: readonly Step[];
}

export type Step = (talk: Talk) => void | Promise<void>;

interface Talk {
  readonly worker: WorkerProcess;
  readonly app: string;
  readonly spec: Partial<StartSpec>;
  hasExited: boolean;
}

type Language = 'node' | 'python';

/** Defines a test for each; `workerOf` makes the worker of an app that is this source. */
export function testConversations(
  conversations: readonly Conversation[],
  language: Language,
  options: { readonly timeout: number; readonly skip: string | false },
  workerOf: (t: TestContext, source: string) => { worker: WorkerProcess; app: string },
): void {
  for (const { title, app, spec = {}, start = READY, steps } of conversations)
    test(`${language}: ${title}`, options, async (t) => {
      const talk: Talk = { ...workerOf(t, APPS[app][language]), spec, hasExited: false };
      await inTurn(...start, ...steps)(talk);
      if (!talk.hasExited) await inTurn(stop(), exits({}))(talk);
    });
}

/** The front sends a message. */
export function sends(message: Message, body: string | Uint8Array = ''): Step {
  return ({ worker }) => worker.send(message, body === '' ? undefined : Buffer.from(body));
}

/** The front sends a call with a JSON body. */
export function call(id: number, input: unknown, fields: Partial<Call> = {}): Step {
  return ({ worker }) => worker.callJson(id, input, fields);
}

/** A call with a part of its body: its id, the part, and the length of the whole, which is that of the part if left out. */
type Part = readonly [id: number, text: string, bodyBytes?: number];

/** The front sends a frame with these calls of a batch. */
export function calls(batch: number, parts: readonly Part[], last = true, fields: Partial<Call> = {}): Step {
  const heads = parts.map(([id, text, bodyBytes = text.length]) =>
    callWith({ id, requestId: `r${id}`, bodyBytes, ...fields }),
  );
  const inlineBytes = parts.map(([, text]) => text.length);
  return sends(
    { type: 'call', calls: heads, inlineBytes, batch, last },
    parts.map(([, text]) => text).join(''),
  );
}

export const cancel = (id: number, reason = 'the client left'): Step => sends({ type: 'cancel', id, reason });
export const credit = (id: number, bytes: number): Step => sends({ type: 'credit', id, bytes });
export const stop = (): Step => sends({ type: 'stop', graceMs: 10_000 });

/** The front sends `start`. */
export const starts =
  (spec: Partial<StartSpec> = {}): Step =>
  (talk) =>
    talk.worker.sendStart(talk.app, { ...talk.spec, ...spec });

/** The front sends bytes that need not be frames. */
export const writes =
  (bytes: Uint8Array): Step =>
  ({ worker }) =>
    worker.writeGarbage(bytes);

/** The next message is of this type, and has these fields and this body. */
export function comes(type: Message['type'], fields: object = {}, body?: string): Step {
  return async ({ worker }) => {
    const arrived = await worker.arrival();
    assertFits(arrived.message, { type, ...fields }, 'the next message');
    if (body !== undefined) assert.equal(arrived.body.toString(), body);
  };
}

/** Several steps as one. */
export function inTurn(...steps: readonly Step[]): Step {
  return async (talk) => {
    for (const step of steps) await step(talk);
  };
}

/** Stands for the id of messages that have none. */
export const OF_NO_CALL = -1;

/** These come next, in any order: each step takes messages of another call, which come one after the other. */
export function inAnyOrder(...steps: readonly (readonly [id: number, step: Step])[]): Step {
  return async (talk) => {
    const left = new Map(steps);
    while (left.size > 0) {
      const { message } = await talk.worker.peek();
      const id = (message as { id?: number }).id ?? OF_NO_CALL;
      const step = left.get(id) ?? assert.fail(`${message.type} of ${id} is not expected`);
      left.delete(id);
      await step(talk);
    }
  };
}

/** The next message is a whole answer in one frame, with this value as its JSON. */
export function answers(id: number, value: unknown, fields: object = {}): Step {
  return async ({ worker }) => {
    const { message, body } = await worker.arrival();
    const expected = { type: 'result', id, status: 200, headers: '', bodyBytes: body.length, ...fields };
    assertFits(message, expected, 'the next message');
    assert.deepEqual(JSON.parse(body.toString()), value);
  };
}

/** A whole answer of this length comes next, in fragments. */
export function comesInFragments(id: number, bodyBytes: number): Step {
  return async ({ worker }) => {
    const first = await worker.arrival();
    assertFits(first.message, { type: 'result', id, bodyBytes }, 'the next message');
    for (let bytes = first.body.length; bytes < bodyBytes;) {
      const { message, body } = await worker.arrival();
      assertFits(message, { type: 'body', id }, 'the next message');
      assert.ok(body.length > 0 && body.length <= MAX_FRAGMENT_BYTES);
      bytes += body.length;
      assert.ok(bytes <= bodyBytes);
    }
  };
}

/** The next message ends the call with an error. */
export const fails = (id: number, code: string, fields: object = {}): Step =>
  comes('error', { id, code, ...fields });

/** The note says, now or soon, that this call is the last that has begun. */
export const untilBegun =
  (id: number): Step =>
  ({ worker }) =>
    worker.untilBegun(id);

/** The note says that this call is the last that has begun, and when, by the clock that all processes share. */
export function hasBegun(id: number): Step {
  return ({ worker }) => {
    const { begun } = worker;
    assert.equal(begun.id, id);
    const ageMs = MONOTONIC_OFFSET_MS + performance.now() - begun.atMs;
    assert.ok(id === 0 || (ageMs >= -1 && ageMs < 60_000), `begun ${ageMs} ms ago`);
  };
}

/** Behind the note are entries of these calls, which began in this order; the last of them has the time of the note. */
export function hasEntries(...ids: readonly number[]): Step {
  return ({ worker }) => {
    const { times = new Map<number, number>(), atMs } = worker.begun;
    const began = ids.map((id) => times.get(id) ?? assert.fail(`no entry of ${id}`));
    assert.deepEqual(
      began,
      began.toSorted((a, b) => a - b),
    );
    assert.equal(began.at(-1), atMs);
  };
}

/** The worker exits, and everything that it has sent was asked for. Texts are those of its whole output. */
export function exits({
  stdout,
  stderr,
  ...exit
}: Partial<Exit> & { readonly stdout?: string | RegExp; readonly stderr?: string | RegExp }): Step {
  return async (talk) => {
    const { worker } = talk;
    assert.deepEqual(await worker.exit, {
      code: exit.signal === undefined ? 0 : null,
      signal: null,
      ...exit,
    });
    talk.hasExited = true;
    assert.deepEqual(worker.received, [], 'nothing more was said');
    if (stdout !== undefined) assertFits(await worker.stdout, stdout, 'stdout');
    if (stderr !== undefined) assertFits(await worker.stderr, stderr, 'stderr');
  };
}

/** Whether the worker exits by itself, since its front is gone or breaks the protocol. */
export const dies = (stderr?: RegExp): Step =>
  exits({ signal: 'SIGKILL', ...(stderr === undefined ? {} : { stderr }) });

/** The front is gone, or one of its descriptors: the worker reads the end of its fd 4, or cannot write to its fd 3. */
export const leaves =
  (...descriptors: readonly (3 | 4)[]): Step =>
  ({ worker }) =>
    worker.leave(...descriptors);

const READY: readonly Step[] = [comes('hello', { protocol: 2 }), starts(), comes('loaded'), comes('ready')];

/** Expressions match texts, objects may have further members, everything else is equal. */
function assertFits(actual: unknown, expected: unknown, what: string): void {
  if (expected instanceof RegExp) {
    assert.match(String(actual), expected, what);
  } else if (typeof expected === 'object' && expected !== null && !Array.isArray(expected)) {
    for (const [name, value] of Object.entries(expected))
      assertFits((actual as Record<string, unknown>)[name], value, `${name} of ${what}: ${show(actual)}`);
  } else {
    assert.deepEqual(actual, expected, what);
  }
}

function show(value: unknown): string {
  return JSON.stringify(value).slice(0, 1000);
}
