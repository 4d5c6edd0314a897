/**
 * The digits example, with a clock on its model. An input `{ told: true }` is answered with what was noted since the last
 * one, and with what the same model takes alone: run after run of the same sizes in this process, with nothing around it.
 */
import type { InferenceContext } from 'banana-serve';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import * as digits from '../../examples/digits/app.js';

export const { config, example, inferenceBatch } = digits;

const ALONE_MS = 150;
/** Fewer runs of a size say nothing. */
const ENOUGH_RUNS = 50;

type Feeds = Record<string, Tensor>;
interface Session {
  run(feeds: Feeds): Promise<unknown>;
}

/** Times of the runs of each size, in ms. */
let noted = new Map<number, number[]>();
let runAlone: (feeds: Feeds) => Promise<{ ms: number }>;

/** As the example does it; its session is timed from then on. */
export async function init(): Promise<void> {
  const { create } = InferenceSession;
  const factory = InferenceSession as unknown as { create: (...args: unknown[]) => Promise<Session> };
  factory.create = async (...args) => timed(await create.apply(InferenceSession, args as never));
  await digits.init();
}

function timed(session: Session): Session {
  const run = session.run.bind(session);
  runAlone = (feeds) => timedRun(run, feeds);
  session.run = async (feeds) => {
    const { output, ms } = await timedRun(run, feeds);
    const size = feeds['image']?.dims[0] as number;
    const times = noted.get(size);
    if (times === undefined) noted.set(size, [ms]);
    else times.push(ms);
    return output;
  };
  return session;
}

/**
 * Runs the model and says how long it computed. onnxruntime-node computes in a turn of the event loop of its own, and what
 * else is done between two turns is none of the model's time: so its callback is timed, and not its promise.
 */
async function timedRun(run: Session['run'], feeds: Feeds): Promise<{ output: unknown; ms: number }> {
  const { setImmediate } = globalThis;
  let ms = Number.NaN;
  globalThis.setImmediate = ((compute: () => void) =>
    setImmediate(() => {
      const startedAtMs = performance.now();
      compute();
      ms = performance.now() - startedAtMs;
    })) as typeof setImmediate;
  try {
    const running = run(feeds);
    globalThis.setImmediate = setImmediate;
    return { output: await running, ms };
  } finally {
    globalThis.setImmediate = setImmediate;
  }
}

export function inference(input: unknown, ctx: InferenceContext): unknown {
  const isAsked = typeof input === 'object' && input !== null && 'told' in input;
  return isAsked ? tell() : digits.inference(input as Parameters<typeof digits.inference>[0], ctx);
}

async function tell(): Promise<object[]> {
  const served = [...noted].filter(([, times]) => times.length >= ENOUGH_RUNS);
  noted = new Map();
  const told = [];
  for (const [size, times] of served.sort(([a], [b]) => a - b)) {
    told.push({ size, runs: times.length, servedMs: median(times), aloneMs: median(await timesAlone(size)) });
  }
  return told;
}

async function timesAlone(size: number): Promise<number[]> {
  const image = new Tensor('float32', new Float32Array(size * 64), [size, 1, 8, 8]);
  const times: number[] = [];
  for (const endMs = performance.now() + ALONE_MS; performance.now() < endMs;) {
    times.push((await runAlone({ image })).ms);
  }
  return times;
}

function median(times: number[]): number {
  return times.sort((a, b) => a - b)[times.length >> 1] as number;
}
