/** A program that calls a model in one way, as its parent tells it: `fork(function-main.js, [WAY, URL])`. */
import { setTimeout as delay } from 'node:timers/promises';
import { Piscina } from 'piscina';
import { Pool } from 'undici';
import { supervise } from '../../index.js';
import { Samples } from '../statistics.js';
import { source } from './child-server.js';
import type { FunctionOrder, FunctionAnswer, InputName, Way } from './function-program.js';

const SMALL_BYTES = 200;
const MB = 2 ** 20;
const MAX_SAMPLES = 2_000_000;
const APP = source('bench/apps/function.mjs');
const [, , way, url = ''] = process.argv;

type Input = { readonly prompt: string } | Float32Array;

interface Callable {
  call(input: Input): Promise<unknown>;
  readonly pids?: () => number[];
}

const WAYS: Readonly<Record<Way, () => Promise<Callable>>> = {
  async thread() {
    const { inference } = (await import(APP)) as { inference(input: Input): unknown };
    return { call: (input) => Promise.resolve(inference(input)) };
  },
  piscina() {
    const pool = poolOf('inference');
    return Promise.resolve({ call: (input) => pool.run(input) as Promise<unknown> });
  },
  'piscina-moves'() {
    const pool = poolOf('moved');
    const call = (input: Input): Promise<unknown> =>
      pool.run(input, ArrayBuffer.isView(input) ? { transferList: [input.buffer as ArrayBuffer] } : {});
    return Promise.resolve({ call });
  },
  function: () => functionOf(APP),
  busy: () => functionOf(source('bench/apps/onnx-busy.mjs')),
  http() {
    const client = new Pool(url, { connections: 32, pipelining: 1 });
    return Promise.resolve({ call: (input) => post(client, input) });
  },
  'http-json'() {
    const client = new Pool(url, { connections: 32, pipelining: 1 });
    const call = async (input: Input): Promise<unknown> => {
      if (!ArrayBuffer.isView(input)) return post(client, input);
      return Float32Array.from((await post(client, [...input])) as number[]);
    };
    return Promise.resolve({ call });
  },
};

async function functionOf(app: string): Promise<Callable> {
  const call = await supervise(app, { workers: 1, spares: 0 });
  return { call, pids: () => call.status().workers.flatMap(({ pid }) => pid ?? []) };
}

function poolOf(name: string): Piscina {
  return new Piscina({ filename: APP, name, minThreads: 1, maxThreads: 1 });
}

/** As JSON, arrays as bytes. */
async function post(client: Pool, input: Input | readonly number[]): Promise<unknown> {
  const isArray = ArrayBuffer.isView(input);
  const type = isArray ? 'application/octet-stream' : 'application/json';
  const body = isArray ? Buffer.from(input.buffer) : JSON.stringify(input);
  const answer = await client.request({ path: '/', method: 'POST', headers: { 'content-type': type }, body });
  if (answer.statusCode !== 200) throw new Error(`${answer.statusCode}: ${await answer.body.text()}`);
  return isArray ? new Float32Array(await answer.body.arrayBuffer()) : answer.body.json();
}

function inputOf(name: InputName): Input {
  if (name === 'small') {
    const empty = JSON.stringify({ prompt: '' }).length;
    return { prompt: 'banana '.repeat(SMALL_BYTES).slice(0, SMALL_BYTES - empty) };
  }
  return new Float32Array((name === '1 MB' ? MB : 10 * MB) / Float32Array.BYTES_PER_ELEMENT).fill(0.5);
}

/** Each caller sends an array that it has got back, as a moved one is gone. */
async function load(
  { call }: Callable,
  { input, callers, seconds, maxCalls }: Extract<FunctionOrder, { do: 'load' }>,
) {
  const samples = new Samples(MAX_SAMPLES);
  const startedAtMs = performance.now();
  const endAtMs = startedAtMs + 1000 * seconds;
  let calls = 0;
  const caller = async (): Promise<void> => {
    let given = inputOf(input);
    while (performance.now() < endAtMs && calls < maxCalls) {
      const sentAtMs = performance.now();
      const answer = await call(given);
      samples.add(performance.now() - sentAtMs);
      calls += 1;
      if (ArrayBuffer.isView(answer)) given = answer as Float32Array;
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  const { p50, p99 } = samples.percentiles();
  return { calls, p50, p99 };
}

/** Time from the death of the worker until a call is answered. */
async function recoveryMs({ call, pids }: Callable): Promise<number> {
  process.kill(pids?.()[0] as number, 'SIGKILL');
  const killedAtMs = performance.now();
  for (;;) {
    const isAnswered = await call(inputOf('small')).then(
      () => true,
      () => false,
    );
    if (isAnswered) return performance.now() - killedAtMs;
  }
}

/** Delays of the timers of this program while the worker computes. */
async function lateness({ call }: Callable, seconds: number) {
  const samples = new Samples(MAX_SAMPLES);
  let isOver = false;
  const busy = call({ ms: 1000 * seconds } as never).then(() => (isOver = true));
  while (!isOver) {
    const sentAtMs = performance.now();
    await delay(PAUSE_MS);
    samples.add(performance.now() - sentAtMs - PAUSE_MS);
  }
  await busy;
  return samples.percentiles();
}

const PAUSE_MS = 5;

const callable = await WAYS[way as Way]();
await callable.call(way === 'busy' ? ({ ms: 1 } as never) : inputOf('small'));
tell({ firstAnswerMs: performance.now(), pids: callable.pids?.() ?? [] });

process.on('message', (order: FunctionOrder) => void follow(order));

async function follow(order: FunctionOrder): Promise<void> {
  if (order.do === 'load') tell({ load: await load(callable, order) });
  else if (order.do === 'kill')
    tell({ recoveryMs: await recoveryMs(callable), pids: callable.pids?.() ?? [] });
  else tell({ lateness: await lateness(callable, order.seconds) });
}

function tell(answer: FunctionAnswer): void {
  process.send?.(answer);
}
