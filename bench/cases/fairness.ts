/** Clients that try to hold up others, without a key and with one: the p99 of a caller beside them, and the front's memory. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { Bench, BenchCase } from '../case.js';
import { peakRssMbOf, resetPeakRss } from '../proc.js';
import type { Row } from '../report.js';
import { compiled, source, type ChildServer } from '../servers/child-server.js';
import type { Percentiles } from '../statistics.js';
import { jsonRequest } from './requests.js';

const KEY = 'bench-key';
const CALLED = 'called';
const MIN_SECONDS = 4;
/** An attack may cost a caller so many times as much as the control. */
const GOAL = 1.5;

interface Attack {
  readonly kind: string;
  readonly connections: number;
  readonly what: string;
  readonly hasKey?: true;
}

const ATTACKS: readonly Attack[] = [
  { kind: 'pipelining', connections: 8, what: 'pipelined GET /livez' },
  { kind: 'pipelining', connections: 300, what: 'pipelined GET /livez' },
  { kind: 'chunks-401', connections: 8, what: 'refused bodies (401) in chunks of one byte' },
  { kind: 'chunks-404', connections: 8, what: 'refused bodies (404) in chunks of one byte', hasKey: true },
  { kind: 'chunks-200', connections: 8, what: 'accepted bodies in chunks of one byte', hasKey: true },
  { kind: 'probes', connections: 8, what: 'requests for a path that is not there' },
  { kind: 'large-bodies', connections: 2, what: 'bodies of 90 MB', hasKey: true },
  { kind: 'gzip-bombs', connections: 2, what: 'gzip bombs of 90 KB to 90 MB', hasKey: true },
  { kind: 'gateway', connections: 2, what: 'bodies of 40 MB in the gateway', hasKey: true },
];

export const fairness: BenchCase = {
  name: 'fairness',
  async run(bench) {
    const rows: Row[] = [];
    for (const attack of ATTACKS) rows.push(await measure(bench, attack));
    return rows;
  },
};

async function measure(bench: Bench, attack: Attack): Promise<Row> {
  const { kind, connections, what, hasKey } = attack;
  const app = source('bench/apps/small.mjs');
  const server = await bench.startBanana(app, {
    key: KEY,
    models: { [CALLED]: app }, // a worker that reads a large body must not count
    flags: ['--api-key', KEY],
  });
  await callAs(bench, server, bench.secondsAtLeast(MIN_SECONDS));
  const quiet = await callAs(bench, server, bench.secondsAtLeast(MIN_SECONDS));
  const control = await callBeside(bench, server, 'control', connections);
  resetPeakRss(server.pid);
  const during = await callBeside(bench, server, kind, connections, hasKey === true ? KEY : '');
  const peakMb = peakRssMbOf(server.pid);
  await server.stop();
  bench.note(
    `${connections} connections, ${what}: p99 quiet ${ms(quiet.p99)}, longest wait ${ms(during.max)} ` +
      `(control ${ms(control.max)}); the front takes at most ${peakMb.toFixed(0)} MB.`,
  );
  return {
    name: `p99 beside ${connections} connections: ${what}`,
    ours: ms(during.p99),
    baseline: `${ms(control.p99)} control`,
    value: during.p99 / control.p99,
    goal: { must: GOAL, better: 'lower', unit: 'x' },
  };
}

async function callBeside(
  bench: Bench,
  server: ChildServer,
  kind: string,
  connections: number,
  key = '',
): Promise<Percentiles> {
  const attackers = fork(compiled('attackers.js'), [server.url, kind, String(connections), key]);
  try {
    await once(attackers, 'message');
    return await callAs(bench, server, bench.secondsAtLeast(MIN_SECONDS));
  } finally {
    attackers.disconnect();
    await once(attackers, 'exit');
  }
}

async function callAs(bench: Bench, server: ChildServer, seconds: number): Promise<Percentiles> {
  const { headers, body } = jsonRequest({ prompt: 'banana' });
  const { latencyMs, failed } = await bench.generator.runClosed({
    request: {
      headers: { ...headers, 'X-Banana-Api-Key': KEY },
      body,
      url: `${server.url}/models/${CALLED}/`,
    },
    connections: 1,
    durationMs: seconds * 1000,
    maxRequests: Infinity,
  });
  if (failed > 0) bench.note(`${failed} calls of the caller failed.`);
  return latencyMs;
}

function ms(value: number): string {
  return `${value.toFixed(1)} ms`;
}
