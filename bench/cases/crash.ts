/**
 * kill -9 of a busy worker: the time until its caller gets the error, and until the next call is served.
 *
 * Death is visible when the kernel closes the worker's files, which it does after freeing the memory: the worker
 * holds a socket to this process (the tether), whose end is that moment, seen without asking the front.
 */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Bench, BenchCase } from '../case.js';
import { postOnce } from '../post-once.js';
import { rssMbOf } from '../proc.js';
import type { Row } from '../report.js';
import { standing } from '../servers/banana.js';
import { source } from '../servers/child-server.js';
import { median } from '../statistics.js';

const FILL_MB = [0, 1024];
const NO_SPARES = ['--spares', '0'];
const STANDBY = ['--standby', '1'];
/** Long enough that only the kill can end the call. */
const BUSY_MS = 60_000;

interface Kill {
  readonly rssMb: number;
  /** Time from the signal to the end of the tether; it is the kernel's own. */
  readonly visibleMs: number;
  readonly toldMs: number;
  readonly servingMs: number;
  /** Time of `init` that `servingMs` leaves out; 0 if a standby serves, which was initialised before. */
  readonly initMs: number;
}

export const crash: BenchCase = {
  name: 'crash',
  async run(bench) {
    const rows: Row[] = [];
    const app = 'bench/apps/heavy.mjs';
    for (const fillMb of FILL_MB) rows.push(...(await killRows(bench, { app, fillMb })));
    rows.push(...(await killRows(bench, { app, fillMb: 0, flags: NO_SPARES, label: ', no spare' })));
    rows.push(
      ...(await killRows(bench, { app, fillMb: 0, flags: STANDBY, label: ', standby', standbys: 1 })),
    );
    return rows;
  },
};

export interface Doomed {
  /** An app that does as `bench/apps/heavy.mjs`. */
  readonly app: string;
  readonly fillMb: number;
  readonly flags?: readonly string[];
  /** Appended to what the rows name. */
  readonly label?: string;
  /** Number of standbys that the flags ask for; default: 0. */
  readonly standbys?: number;
}

/** Kills as many workers as there are rounds. */
export async function killRows(bench: Bench, doomed: Doomed): Promise<Row[]> {
  const kills: Kill[] = [];
  for (let i = 0; i < bench.duration.rounds; i += 1) kills.push(await killInNewServer(bench, doomed));
  return rowsOf(bench, kills, doomed);
}

/** A server per kill: the second death in a row is answered with a pause, on purpose. */
async function killInNewServer(bench: Bench, doomed: Doomed): Promise<Kill> {
  const { app, fillMb, flags = [], standbys = 0 } = doomed;
  const tethers = await Tethers.listen();
  try {
    const server = await bench.startBanana(source(app), {
      env: { BENCH_FILL_MB: String(fillMb), BENCH_TETHER_PORT: String(tethers.port) },
      flags,
    });
    const kill = await killOnce(server.url, tethers, standbys);
    await server.stop();
    return kill;
  } finally {
    tethers.close();
  }
}

async function killOnce(url: string, tethers: Tethers, standbys: number): Promise<Kill> {
  if (standbys > 0) await standing(url, standbys);
  const before = JSON.parse((await postOnce(url, { busyMs: 0 })).text) as { pid: number };
  const doomed = postOnce(url, { busyMs: BUSY_MS });
  await delay(500); // the call runs: a worker that computes reports nothing else; a spare process is loaded
  const rssMb = rssMbOf(before.pid);
  const ended = tethers.end(before.pid);
  const killedAtMs = performance.now();
  process.kill(before.pid, 'SIGKILL');
  const next = postOnce(url, { busyMs: 0 });
  const [visibleAtMs, told, served] = await Promise.all([ended, doomed, next]);
  if (told.status !== 500) throw new Error(`the caller of a killed worker got ${told.status}: ${told.text}`);
  if (served.status !== 200) throw new Error(`the call after a kill got ${served.status}: ${served.text}`);
  const initMs = standbys > 0 ? 0 : (JSON.parse(served.text) as { initMs: number }).initMs;
  return {
    rssMb,
    visibleMs: visibleAtMs - killedAtMs,
    toldMs: told.headAtMs - visibleAtMs,
    servingMs: served.headAtMs - visibleAtMs - initMs,
    initMs,
  };
}

function rowsOf(bench: Bench, kills: readonly Kill[], { label = '', standbys = 0 }: Doomed): Row[] {
  const of = (metric: (kill: Kill) => number): number[] => kills.map(metric).sort((a, b) => a - b);
  const range = (values: readonly number[]): string =>
    `${values[0]?.toFixed(1)} to ${values.at(-1)?.toFixed(1)} ms`;
  const rss = `${median(of(({ rssMb }) => rssMb)).toFixed(0)} MB${label}`;
  const told = of(({ toldMs }) => toldMs);
  const serving = of(({ servingMs }) => servingMs);
  const visible = median(of(({ visibleMs }) => visibleMs)).toFixed(1);
  const init = median(of(({ initMs }) => initMs)).toFixed(0);
  bench.note(
    `kill -9 at ${rss}: the kernel made the death visible after ${visible} ms; init took ${init} ms.`,
  );
  return [
    {
      name: `kill -9 of a busy worker (RSS ${rss}): death visible to caller told`,
      ours: range(told),
      baseline: '',
      value: median(told),
      goal: { must: 50, better: 'lower', unit: 'ms' },
    },
    {
      name: `kill -9 of a busy worker (RSS ${rss}): death visible to serving again, minus init`,
      ours: range(serving),
      baseline: '',
      value: median(serving),
      goal: { must: standbys > 0 ? 5 : 300, better: 'lower', unit: 'ms' },
    },
  ];
}

/** The sockets that workers hold to this process, by pid. */
class Tethers {
  readonly #server: Server;
  readonly #sockets = new Map<number, Socket>();

  static async listen(): Promise<Tethers> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Tethers(server);
  }

  private constructor(server: Server) {
    this.#server = server;
    server.on('connection', (socket) => {
      socket.on('error', () => {}); // a killed peer may end it with a reset
      socket.once('data', (chunk: Buffer) => this.#sockets.set(Number(chunk.toString()), socket));
      socket.resume();
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Resolves with the time at which the worker's end of the tether is closed. */
  async end(pid: number): Promise<number> {
    const socket = this.#sockets.get(pid);
    if (socket === undefined) throw new Error(`worker ${pid} has no tether`);
    await Promise.race([once(socket, 'end'), once(socket, 'close')]);
    return performance.now();
  }

  close(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
    this.#server.close();
  }
}
