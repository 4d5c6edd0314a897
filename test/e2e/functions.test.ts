/** A model as a function: values and errors, limits of a call, streams, deaths of workers, and wrong use. */
import assert from 'node:assert/strict';
import { getEventListeners, once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Tensor, serve, supervise, type ModelFunction, type ServeError } from '../../index.js';
import { refusalOf, until } from '../helpers/functions.js';
import { ROOT, fixture } from '../helpers/server.js';

const TELLS = join(ROOT, 'test/fixtures/functions/tells.mjs');

type Numbers = { inferenceBatch: (inputs: number[]) => number[] };
type Tells = ModelFunction<{ inference: (input: Record<string, unknown>) => unknown }>;

describe('a function of one worker', { timeout: 240_000 }, () => {
  let tell: Tells;
  let printed = '';
  before(async () => {
    const prints = (line: string): unknown => (printed = line);
    tell = await supervise(pathToFileURL(TELLS), { queueSize: 1, prints });
  });
  after(() => tell[Symbol.asyncDispose]());

  /** Begins a call that sleeps until it is ended. */
  async function begunSleep(options = {}): Promise<{ readonly refusal: Promise<ServeError> }> {
    printed = '';
    const refusal = refusalOf(tell({ act: 'sleep', ms: 60_000 }, options));
    await until(() => printed === 'sleeping');
    return { refusal };
  }

  const pid = async (): Promise<number> => (await tell({ act: 'pid' })) as number;

  for (const [name, value] of Object.entries({
    'typed arrays': [new Float32Array([1.5, 2]), new BigInt64Array([1n]), new Uint8ClampedArray([300])],
    'a large typed array': new Float64Array(100_000).fill(0.5),
    'a Buffer': Buffer.from('bytes'),
    'a DataView of its own length': new DataView(new ArrayBuffer(8), 2, 4),
    dates: [new Date(1)],
    'maps and sets': new Map<unknown, unknown>([[{ key: 1 }, new Set([1, undefined])]]),
    'numbers that JSON has not': [NaN, -0, Infinity, 12n],
    undefined: undefined,
    'errors with causes': [new RangeError('out', { cause: new Error('why') })],
  }))
    test(`it gets and returns ${name} unchanged`, async () => {
      assert.deepStrictEqual(await tell({ act: 'echo', value }), value);
    });

  test('cycles stay cycles, and an object of a class crosses as its fields', async () => {
    class Point {
      x = 1;
    }
    const value: Record<string, unknown> = { point: new Point() };
    value['self'] = value;
    const answer = (await tell({ act: 'echo', value })) as typeof value;
    assert.equal(answer['self'], answer);
    assert.deepStrictEqual(answer['point'], { x: 1 });
  });

  test("small arrays have memory of their own, and not the whole message's", async () => {
    const [array] = (await tell({ act: 'echo', value: [new Float32Array(3), 'x'.repeat(1000)] })) as [
      Float32Array,
    ];
    assert.equal(array.buffer.byteLength, 12);
  });

  test('a value that cannot cross is named by its path, in the input and in the answer', async () => {
    const shared = new SharedArrayBuffer(4);
    for (const [value, text] of [
      [{ list: [1, { run: () => {} }] }, 'input.value.list[1].run is a function.'],
      [{ a: Symbol('s') }, 'input.value.a is a symbol.'],
      [new Map([['k', Promise.resolve()]]), 'input.value.get("k") cannot: it is a Promise'],
      [[shared], 'input.value[0] cannot: it is a SharedArrayBuffer'],
    ] as const) {
      const error = await refusalOf(tell({ act: 'echo', value }));
      assert.deepEqual([error.code, error.begun], ['SERVE_BAD_BODY', false]);
      assert.ok(error.message.includes(text), error.message);
    }
    const error = await refusalOf(tell({ act: 'function' }));
    assert.deepEqual([error.code, error.begun], ['SERVE_OUTPUT_INVALID', true]);
    assert.match(error.message, /output\.deep\[0\]\.run is a function/);
  });

  test("the app's error is the cause, by its name, with its message and its stack", async () => {
    const error = await refusalOf(tell({ act: 'throw', message: 'no text' }));
    assert.deepEqual([error.code, error.begun], ['SERVE_INFERENCE_FAILED', true]);
    const cause = error.cause as Error;
    assert.ok(cause instanceof Error);
    assert.deepEqual([cause.name, cause.message], ['OcrError', 'no text']);
    assert.match(cause.stack ?? '', /tells\.mjs:\d+/);
  });

  test('a call whose worker is killed has begun, and the next call is answered by another worker', async () => {
    const first = await pid();
    const died = once(tell.events, 'death');
    const lost = await begunSleep();
    process.kill(first, 'SIGKILL');
    const error = await lost.refusal;
    assert.deepEqual([error.code, error.begun], ['SERVE_WORKER_LOST', true]);
    assert.notEqual(await pid(), first);
    assert.equal(((await died) as [{ pid: number }])[0].pid, first);
  });

  test('a full queue refuses at once, and says when to try again', async () => {
    const control = new AbortController();
    const running = await begunSleep({ signal: control.signal });
    const calls = Array.from({ length: 200 }, () => tell({ act: 'pid' })); // the worker may get some ahead
    const error = await refusalOf(Promise.race(calls));
    assert.deepEqual([error.code, error.begun], ['SERVE_QUEUE_FULL', false]);
    assert.ok((error.retryAfterMs ?? 0) >= 1000);
    control.abort();
    await running.refusal;
    await Promise.allSettled(calls);
  });

  test('timeoutMs ends a call, and the app is asked to end it', async () => {
    const error = await refusalOf(tell({ act: 'sleep', ms: 60_000 }, { timeoutMs: 50 }));
    assert.equal(error.code, 'SERVE_DEADLINE');
    await tell({ act: 'print', text: 'free again' }); // the same worker
    await until(() => printed === 'free again'); // no word of the call comes later
  });

  test('one signal is for any number of calls, and is listened to once', async () => {
    const control = new AbortController();
    const { signal } = control;
    const { refusal: running } = await begunSleep({ signal });
    const waiting = refusalOf(tell({ act: 'pid' }, { signal }));
    assert.equal(getEventListeners(signal, 'abort').length, 1);
    const why = new Error('no longer needed');
    control.abort(why);
    const errors = await Promise.all([running, waiting]);
    assert.deepEqual(
      errors.map(({ code, begun, cause }) => [code, begun, cause]),
      [
        ['SERVE_CANCELLED', true, why],
        ['SERVE_CANCELLED', false, why],
      ],
    );
    assert.equal((await refusalOf(tell({ act: 'pid' }, { signal }))).code, 'SERVE_CANCELLED');
    const other = new AbortController().signal;
    await tell({ act: 'pid' }, { signal: other });
    assert.equal(getEventListeners(other, 'abort').length, 0);
  });

  test('the answer of a generator is a stream of values', async () => {
    const items: unknown[] = [];
    const stream = (await tell({ act: 'count', to: 5 })) as AsyncIterable<unknown>;
    for await (const item of stream) items.push(item);
    assert.deepEqual(items, [1, 2, 3, 4, 5]);
    for await (const _ of (await tell({ act: 'count', to: 0 })) as AsyncIterable<unknown>) assert.fail();
  });

  test('an error before the first item rejects the call, a later one the stream', async () => {
    const early = await refusalOf(tell({ act: 'countAndFail', to: 0 }));
    assert.deepEqual([early.code, (early.cause as Error).name], ['SERVE_INFERENCE_FAILED', 'OcrError']);
    const stream = (await tell({ act: 'countAndFail', to: 1 })) as AsyncIterableIterator<unknown>;
    assert.deepEqual(await stream.next(), { done: false, value: 1 });
    const late = await refusalOf(stream.next());
    assert.deepEqual([late.code, late.begun, (late.cause as Error).message], [early.code, true, 'no page']);
    assert.equal((await stream.next()).done, true);
  });

  test('a view of shared memory is copied', async () => {
    const value = new Int32Array(new SharedArrayBuffer(8)).fill(3);
    const answer = (await tell({ act: 'echo', value })) as Int32Array;
    assert.deepEqual([answer.buffer instanceof ArrayBuffer, [...answer]], [true, [3, 3]]);
  });

  test('a stream whose reader leaves ends in the app, too', async () => {
    for await (const item of (await tell({ act: 'count', to: Infinity })) as AsyncIterable<unknown>)
      if (item === 3) break;
    await until(() => tell.status().inFlight === 0);
    await pid();
  });

  test('a stream that is not read stops the generator', async () => {
    const stream = (await tell({ act: 'fill' })) as AsyncIterableIterator<{ at: number }>;
    await new Promise((resolve) => setTimeout(resolve, 200));
    let last = 0;
    for await (const { at } of stream) if ((last = at) === 100) break;
    assert.equal(last, 100);
  });

  test('an item that cannot cross ends the stream, and the generator with it', async () => {
    const stream = (await tell({ act: 'withFunction' })) as AsyncIterable<unknown>;
    await assert.rejects(async () => {
      for await (const item of stream) assert.equal(item, 1);
    }, /item is a function/);
    assert.equal(await tell({ act: 'left' }), 1);
  });

  test('onProgress gets what the app reports', async () => {
    const told: unknown[] = [];
    const onProgress = (...report: unknown[]): unknown => told.push(report);
    assert.equal(await tell({ act: 'progress' }, { onProgress }), null, 'it is no job');
    assert.deepEqual(told, [[0.5, 'half']]);
    await tell({ act: 'progress' });
  });

  test('a time that is longer than any timer is none', async () => {
    assert.equal(await tell({ act: 'echo', value: 1 }, { timeoutMs: Infinity }), 1);
  });

  test('options of a call are checked', async () => {
    for (const options of [{ timeoutMs: 0 }, { timeoutMs: '5s' }, { signal: {} }, { onProgress: 1 }])
      assert.equal((await refusalOf(tell({ act: 'pid' }, options as object))).code, 'SERVE_CONFIG');
    assert.match((await refusalOf(tell.route('/none')({}))).message, /no route \/none; it has \//);
  });
});

describe('the way of a function', { timeout: 240_000 }, () => {
  test('close() finishes the calls that were accepted; after it there is none', async () => {
    const tell: Tells = await supervise(TELLS, { prints: 'ignore' });
    const running = tell({ act: 'sleep', ms: 200 });
    const waiting = tell({ act: 'pid' });
    const closing = tell.close();
    const late = await refusalOf(tell({ act: 'pid' }));
    assert.deepEqual([late.code, late.begun], ['SERVE_SHUTTING_DOWN', false]);
    await closing;
    assert.equal(await running, 'slept');
    assert.equal(typeof (await waiting), 'number');
    assert.equal((await refusalOf(tell.close())).code, 'SERVE_SHUTTING_DOWN');
    await tell[Symbol.asyncDispose]();
  });

  test('several functions of one file are several models, and the routes of an app are functions', async () => {
    const app = fixture('potassium.mjs');
    const [one, two] = await Promise.all([supervise(app), supervise(app)]);
    assert.deepEqual([one.status().name, two.status().name].sort(), ['potassium', 'potassium-2']);
    assert.deepEqual(await one.route('/answer')('text'), 'text');
    await Promise.all([one.close(), two.close()]);
  });

  test('a model without code takes and returns tensors by name, those of one dimension as typed arrays', async () => {
    const digits = await supervise(join(ROOT, 'examples/digits/digits.onnx'), { prints: 'ignore' });
    const data = new Float32Array(64);
    const image = new Tensor('FP32', [1, 1, 8, 8], data);
    const answer = await digits({ image });
    const [first] = Object.values(answer as Readonly<Record<string, unknown>>);
    assert.ok(first instanceof Tensor);
    assert.deepEqual([first.datatype, first.shape.length], ['FP32', 2]);
    assert.deepStrictEqual(await digits({ image: { datatype: 'FP32', shape: [1, 1, 8, 8], data } }), answer);
    assert.deepStrictEqual(await digits({ image: new Uint8Array(data.buffer) }), answer);
    assert.match((await refusalOf(digits({}))).message, /Input "image" is missing/);
    assert.match((await refusalOf(digits({ image: data }))).message, /Input "image": .*\[64\]/);
    await digits.close();
  });

  test('a server calls its models in the same way', async () => {
    const server = await serve({ app: TELLS, host: '127.0.0.1', port: 0, logLevel: 'silent' });
    const value = new Map([[1, new Float32Array([1])]]);
    assert.deepStrictEqual(await server.call('tells', { act: 'echo', value }), value);
    const error = await refusalOf(server.call({ name: 'tells' }, { act: 'throw', message: 'no text' }));
    assert.deepEqual([error.code, (error.cause as Error).name], ['SERVE_INFERENCE_FAILED', 'OcrError']);
    const unknown = await refusalOf(server.call('other', {}));
    assert.deepEqual([unknown.code, unknown.begun], ['SERVE_MODEL_NOT_FOUND', false]);
    await server.close();
  });

  test('a place of prints that has ended, and a logger that throws, hold nothing up', async () => {
    const place = new PassThrough();
    place.destroy();
    let lines = 0;
    const log = Object.fromEntries(
      ['debug', 'info', 'warn', 'error'].map((level) => [
        level,
        () => {
          lines += 1;
          throw new Error('the transport has ended');
        },
      ]),
    );
    const other: Tells = await supervise(TELLS, { prints: place, log: log as never });
    for (let i = 0; i < 8; i += 1) await other({ act: 'print', text: 'x'.repeat(100_000) });
    assert.equal(lines, 1, 'it gets no more');
    await other.close();
  });

  test('workers end while it is idle, and come again for a call', async () => {
    const tell: Tells = await supervise(TELLS, {
      prints: 'ignore',
      minWorkers: 0,
      maxWorkers: 1,
      idleTimeout: 100,
    });
    const first = await tell({ act: 'pid' });
    await until(() => tell.status().workers.length === 0);
    assert.notEqual(await tell({ act: 'pid' }), first);
    await tell.close();
  });

  test('calls come together for an app that takes them so', async () => {
    const batch = await supervise<Numbers>(join(ROOT, 'test/fixtures/functions/counts-batches.mjs'), {
      batchSize: 8,
      prints: 'ignore',
    });
    const sizes = await Promise.all(Array.from({ length: 20 }, (_, i) => batch(i)));
    assert.ok(Math.max(...sizes) > 1, sizes.join());
    await batch.close();
  });

  test('a function may not change what all functions of the program share', async () => {
    const tell: Tells = await supervise(TELLS, { prints: 'ignore', spawnConcurrency: 2 });
    const error = await refusalOf(supervise(TELLS, { spawnConcurrency: 3 }));
    assert.match(error.message, /spawnConcurrency.*the first one has decided/);
    await tell.close();
  });

  test('an event says when a worker is ready', async () => {
    const tell: Tells = await supervise(TELLS, { prints: 'ignore' });
    let ready = '';
    tell.events.on('ready', ({ worker, startMs }) => (ready = `${worker} ${startMs > 0}`));
    await refusalOf(tell({ act: 'kill' }));
    await tell({ act: 'pid' });
    assert.equal(ready, '0 true');
    await tell.close();
  });

  test('an event says that no worker can start any more, and calls say so until one can', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'banana-fails-'));
    t.after(() => rm(folder, { recursive: true }));
    const app = join(folder, 'app.mjs');
    const rest = 'export const inference = () => process.kill(process.pid, "SIGKILL");';
    await writeFile(app, rest);
    const kill = await supervise(app, { prints: 'ignore', restartLimit: 1 });
    const failing: ServeError[] = [];
    kill.events.on('failing', (error) => failing.push(error));
    await writeFile(app, `throw new Error('no weights'); ${rest}`);
    await refusalOf(kill({}));
    const refused = await refusalOf(kill({})); // it waits for the starts, and the program for it
    assert.deepEqual(
      [refused.code, refused.begun, (refused.retryAfterMs ?? 0) > 0],
      ['SERVE_NOT_READY', false, true],
    );
    assert.deepEqual(
      failing.map(({ code, begun }) => [code, begun]),
      [['SERVE_APP_INVALID', false]],
    );
    await kill.close();
  });

  test('prints go where the program says', async () => {
    const lines: string[] = [];
    const prints = (line: string, stream: string): number => lines.push(`${stream} ${line}`);
    const tell: Tells = await supervise(TELLS, { prints });
    await tell({ act: 'print', text: 'a\nb' });
    await tell.close();
    assert.deepEqual(lines, ['stdout a', 'stdout b']);
  });

  for (const [what, app, options, code, text] of [
    [
      'an option of a listener',
      TELLS,
      { port: 8000 },
      'SERVE_CONFIG',
      /supervise\(\{ port \}\): a function has no/,
    ],
    [
      'an unknown option',
      TELLS,
      { worker: 2 },
      'SERVE_CONFIG',
      /there is no such option\. Did you mean workers\?/,
    ],
    ['a wrong value', TELLS, { workers: 'two' }, 'SERVE_CONFIG', /supervise\(\{ workers \}\): "two" is not/],
    ['a file that is not there', './nowhere.mjs', {}, 'SERVE_CONFIG', /no such file/],
    ['no app', 5, {}, 'SERVE_CONFIG', /the path of an app/],
    ['a URL that is none', 'file://bad host/x', {}, 'SERVE_CONFIG', /the path of an app/],
    ['a logger that is none', TELLS, { log: {} }, 'SERVE_CONFIG', /a logger/],
    [
      'an app that exports nothing',
      join(ROOT, 'test/fixtures/functions/nothing.mjs'),
      {},
      'SERVE_APP_INVALID',
      /inference/,
    ],
    ['an app that throws at its start', fixture('throws-in-init.mjs'), {}, 'SERVE_INIT_FAILED', /init/],
    ['a custom service', fixture('works-service.mjs'), {}, 'SERVE_APP_INVALID', /custom service of Multi/],
  ] as const)
    test(`${what} is an error at once`, async () => {
      const error = await refusalOf(supervise(app as string, { prints: 'ignore', ...options } as object));
      assert.deepEqual([error.code, error.begun], [code, false], error.message);
      assert.match(error.message, text);
    });
});
