/**
 * The digits example, with a clock on its model. An input `{ told: true }` is answered with what was noted since the last
 * one, and with what the same model takes in a tight loop: run after run of the same sizes in this process, with nothing
 * around it.
 */
import type { InferenceContext } from 'banana-serve';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import type { Told } from '../servers/bare-digits.js';
import * as digits from '../../examples/digits/app.js';

export const { config, example, inferenceBatch } = digits;

const LOOP_MS = 50;
/** Sizes with fewer runs are left out. */
const ENOUGH_RUNS = 150;

type Feeds = Record<string, Tensor>;
interface Session {
  run(feeds: Feeds): Promise<unknown>;
}

interface Times {
  readonly ms: number[];
  readonly gapMs: number[];
}

interface TimedRun {
  readonly output: unknown;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}

/** By the size of the run. */
let noted = new Map<number, Times>();
let lastEndedAtMs = Number.NaN;
let runAlone: (feeds: Feeds) => Promise<TimedRun>;

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
    const { output, startedAtMs, endedAtMs } = await timedRun(run, feeds);
    const times = timesOf(feeds['image']?.dims[0] as number);
    times.ms.push(endedAtMs - startedAtMs);
    if (!Number.isNaN(lastEndedAtMs)) times.gapMs.push(startedAtMs - lastEndedAtMs);
    lastEndedAtMs = endedAtMs;
    return output;
  };
  return session;
}

function timesOf(size: number): Times {
  const known = noted.get(size);
  if (known !== undefined) return known;
  const times = { ms: [], gapMs: [] };
  noted.set(size, times);
  return times;
}

/**
 * Runs the model and reports when it computed. onnxruntime-node computes in a turn of the event loop of its own, and what
 * else is done between two turns is none of the model's time: so its callback is timed, and not its promise.
 */
async function timedRun(run: Session['run'], feeds: Feeds): Promise<TimedRun> {
  const { setImmediate } = globalThis;
  let [startedAtMs, endedAtMs] = [Number.NaN, Number.NaN];
  globalThis.setImmediate = ((compute: () => void) =>
    setImmediate(() => {
      startedAtMs = performance.now();
      compute();
      endedAtMs = performance.now();
    })) as typeof setImmediate;
  try {
    const running = run(feeds);
    globalThis.setImmediate = setImmediate;
    return { output: await running, startedAtMs, endedAtMs };
  } finally {
    globalThis.setImmediate = setImmediate;
  }
}

export function inference(input: unknown, ctx: InferenceContext): unknown {
  const isAsked = typeof input === 'object' && input !== null && 'told' in input;
  return isAsked ? tell() : digits.inference(input as Parameters<typeof digits.inference>[0], ctx);
}

export async function tell(): Promise<Told[]> {
  const enough = [...noted].filter(([, { gapMs }]) => gapMs.length >= ENOUGH_RUNS);
  noted = new Map();
  lastEndedAtMs = Number.NaN;
  const told = [];
  for (const [size, { ms, gapMs }] of enough.sort(([a], [b]) => a - b)) {
    const loopMs = median(await timesInLoop(size));
    told.push({ size, runs: ms.length, ms: median(ms), gapMs: median(gapMs), loopMs });
  }
  return told;
}

async function timesInLoop(size: number): Promise<number[]> {
  const image = new Tensor('float32', new Float32Array(size * 64), [size, 1, 8, 8]);
  const times: number[] = [];
  for (const endMs = performance.now() + LOOP_MS; performance.now() < endMs;) {
    const { startedAtMs, endedAtMs } = await runAlone({ image });
    times.push(endedAtMs - startedAtMs);
  }
  return times;
}

function median(times: number[]): number {
  return times.sort((a, b) => a - b)[times.length >> 1] as number;
}
