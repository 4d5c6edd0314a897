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
let runAlone: (feeds: Feeds) => Promise<unknown>;

/** As the example does it; its session is timed from then on. */
export async function init(): Promise<void> {
  const { create } = InferenceSession;
  const factory = InferenceSession as unknown as { create: (...args: unknown[]) => Promise<Session> };
  factory.create = async (...args) => timed(await create.apply(InferenceSession, args as never));
  await digits.init();
}

function timed(session: Session): Session {
  const run = session.run.bind(session);
  runAlone = run;
  session.run = async (feeds) => {
    const startedAtMs = performance.now();
    const output = await run(feeds);
    const size = feeds['image']?.dims[0] as number;
    const times = noted.get(size);
    if (times === undefined) noted.set(size, [performance.now() - startedAtMs]);
    else times.push(performance.now() - startedAtMs);
    return output;
  };
  return session;
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
    const startedAtMs = performance.now();
    await runAlone({ image });
    times.push(performance.now() - startedAtMs);
  }
  return times;
}

function median(times: number[]): number {
  return times.sort((a, b) => a - b)[times.length >> 1] as number;
}
