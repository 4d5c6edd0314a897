/**
 * Mixed traffic for as long as the rounds last (`--rounds 60 --seconds 60` is an hour): do the lows of the front's
 * memory rise? Small and large bodies, tensors, streams, clients that leave, refused requests, failing calls, deaths, jobs,
 * health, status and metrics, on connections that are kept and on new ones, with one to three workers.
 */
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { BenchCase } from '../case.js';
import { readAfterGc } from '../memory.js';
import { rssMbOf } from '../proc.js';
import type { Row } from '../report.js';
import { source } from '../servers/child-server.js';

/** Rounds before the first that counts: caches fill and code is compiled. */
const WARM_UP_SHARE = 1 / 4;
const SAMPLE_MS = 250;
/** Requests a second: little enough that the machine is not the limit. */
const RATE = 120;

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** The client leaves this many ms after its request. */
  readonly leavesAfterMs?: number;
}

const json = (value: unknown): Sent => ({
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(value),
});
const MEGABYTE = json({ text: 'x'.repeat(1024 * 1024) });
const TENSOR = {
  name: 'x',
  datatype: 'FP32',
  shape: [2, 128],
  data: Array.from({ length: 256 }, (_, i) => i / 2),
};
const SMALL = json({ prompt: 'x'.repeat(150) });

/** One cycle of the traffic; each entry with how many of 1,000 requests it is. */
const MIX: readonly (readonly [count: number, sent: Sent])[] = [
  [560, SMALL],
  [20, { ...SMALL, headers: { 'content-type': 'application/json', prefer: 'respond-async' } }],
  [20, { ...json({ inputs: [TENSOR] }), path: '/v2/models/mixed/infer' }],
  [20, MEGABYTE],
  [40, json({ act: 'stream', rows: 50 })],
  [10, { ...json({ act: 'stream', rows: 100_000 }), leavesAfterMs: 20 }],
  [30, { ...json({ act: 'wait', waitMs: 50 }), leavesAfterMs: 10 }],
  [40, json({ act: 'throw' })],
  [1, json({ act: 'exit' })],
  [40, { ...SMALL, body: '{"broken' }],
  [40, { method: 'GET', path: '/no/such/path' }],
  [20, { ...MEGABYTE, path: '/no/such/path' }],
  [
    39,
    {
      ...json({ apiKey: 'k', modelKey: 'm', modelInputs: { prompt: 'x' }, startOnly: false }),
      path: '/start/v4',
    },
  ],
  [60, { method: 'GET', path: '/readyz' }],
  [30, { method: 'GET', path: '/status' }],
  [30, { method: 'GET', path: '/metrics' }],
];

export const mixedSoak: BenchCase = {
  name: 'mixed-soak',
  async run(bench) {
    const server = await bench.startBanana(source('bench/apps/mixed.mjs'), {
      workers: null,
      flags: ['--min-workers', '1', '--max-workers', '3', '--idle-timeout', '20s'],
      preload: 'servers/preload-gc.js',
    });
    const { rounds, secondsPerRound } = bench.duration;
    const answers = new Map<string, number>();
    const lows: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const [low] = await Promise.all([
        lowestRssMb(server.pid, secondsPerRound * 1000),
        sendMix(server.url, secondsPerRound * 1000, answers),
      ]);
      lows.push(low);
      console.error(`mixed-soak: round ${round + 1} of ${rounds}, low ${low.toFixed(1)} MB`);
    }
    const { rssMb, files } = await readAfterGc(server.pid);
    const counted = [...answers].sort().map(([status, count]) => `${count} x ${status}`);
    bench.note(
      `mixed-soak: ${counted.join(', ')}; after GC at the end ${rssMb.toFixed(1)} MB, ${files} open files.`,
    );
    return [rowOf(lows, rounds * secondsPerRound)];
  },
};

function rowOf(lows: readonly number[], seconds: number): Row {
  const counted = lows.slice(Math.floor(lows.length * WARM_UP_SHARE));
  const half = Math.floor(counted.length / 2);
  return {
    name: `${(seconds / 60).toFixed(0)} minutes of mixed traffic, front: median of the lows of RSS, second half against first`,
    ours: `${lows.map((low) => low.toFixed(0)).join(', ')} MB`,
    baseline: '',
    value: median(counted.slice(half)) - median(counted.slice(0, half)),
    goal: { must: 5, better: 'lower', unit: 'MB' },
  };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}

async function lowestRssMb(pid: number, forMs: number): Promise<number> {
  const endMs = performance.now() + forMs;
  let low = Infinity;
  while (performance.now() < endMs) {
    low = Math.min(low, rssMbOf(pid));
    await delay(SAMPLE_MS);
  }
  return low;
}

/** Sends the mix at an even rate, whatever the answers; resolves when all are answered. */
async function sendMix(url: string, forMs: number, answers: Map<string, number>): Promise<void> {
  const kept = new Agent({ keepAlive: true, maxSockets: 32 });
  const cycle = spread();
  const startedMs = performance.now();
  const open: Promise<void>[] = [];
  for (let sent = 0; performance.now() - startedMs < forMs; sent += 1) {
    const next = cycle[sent % cycle.length] as Sent;
    const agent = sent % 10 === 0 ? new Agent() : kept;
    open.push(
      send(url, next, agent).then((status) => {
        answers.set(status, (answers.get(status) ?? 0) + 1);
      }),
    );
    const dueMs = startedMs + ((sent + 1) / RATE) * 1000;
    await delay(Math.max(0, dueMs - performance.now()));
  }
  await Promise.all(open);
  kept.destroy();
}

/** The mix with every kind spread evenly over the cycle. */
function spread(): Sent[] {
  return MIX.flatMap(([count, sent]) =>
    Array.from({ length: count }, (_, i) => ({ at: (i + 0.5) / count, sent })),
  )
    .toSorted((a, b) => a.at - b.at)
    .map(({ sent }) => sent);
}

function send(
  url: string,
  { method = 'POST', path = '/', headers = {}, body, leavesAfterMs }: Sent,
  agent: Agent,
): Promise<string> {
  return new Promise((resolve) => {
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
    const asked = request(
      new URL(path, url),
      { agent, method, headers: { ...headers, ...length } },
      (response) => {
        response.resume();
        response.once('close', () => {
          resolve(response.complete ? String(response.statusCode) : 'cut');
        });
      },
    );
    asked.once('error', () => {
      resolve(leavesAfterMs === undefined ? 'broken' : 'left');
    });
    if (leavesAfterMs !== undefined) setTimeout(() => asked.destroy(), leavesAfterMs);
    asked.end(body);
  });
}
