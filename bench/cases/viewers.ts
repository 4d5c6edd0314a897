/** Fifty viewers of the page at `/`, who get a snapshot each second: the CPU that they take of the front, with and without calls. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Bench, BenchCase } from '../case.js';
import { cpuSecondsOf } from '../proc.js';
import { source, type ChildServer } from '../servers/child-server.js';

const VIEWERS = 50;
/** A snapshot is sent each second, so a shorter time has too few. */
const MIN_SECONDS = 10;

export const viewers: BenchCase = {
  name: 'viewers',
  async run(bench) {
    const server = await bench.startBanana(source('bench/apps/small.mjs'));
    const without = await percentOfCore(bench, server);
    const watching = await Promise.all(Array.from({ length: VIEWERS }, () => watch(server)));
    const percent = await percentOfCore(bench, server);
    const received = watching.map(({ socket }) => socket.bytesRead);
    for (const { socket } of watching) socket.destroy();
    const slowest = Math.min(...watching.map((viewer) => viewer.snapshots));
    bench.note(
      `${VIEWERS} viewers: the front used ${percent.toFixed(2)}% of a core, without them ${without.toFixed(2)}%; ` +
        `each got at least ${slowest} snapshots and ${(Math.min(...received) / 1024).toFixed(0)} kB.`,
    );
    return [
      {
        name: `${VIEWERS} viewers of the page: share of a core, more`,
        ours: `${percent.toFixed(2)}%`,
        baseline: `${without.toFixed(2)}%`,
        value: percent - without,
        goal: { must: 1, better: 'lower', unit: '%' },
      },
    ];
  },
};

async function percentOfCore(bench: Bench, { pid }: ChildServer): Promise<number> {
  const seconds = bench.secondsAtLeast(MIN_SECONDS);
  const before = cpuSecondsOf(pid);
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  return (100 * (cpuSecondsOf(pid) - before)) / seconds;
}

interface Watching {
  readonly socket: Socket;
  snapshots: number;
}

/** Resolves once the first snapshot is there. */
async function watch({ url }: ChildServer): Promise<Watching> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const watching = { socket, snapshots: 0 };
  await once(socket, 'connect');
  socket.write(`GET /_k/live HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`);
  await new Promise<void>((resolve, reject) => {
    socket.on('data', (piece: Buffer) => {
      if (!piece.includes('event: snapshot')) return;
      watching.snapshots += 1;
      resolve();
    });
    socket.once('close', () => reject(new Error('a viewer was disconnected before its first snapshot')));
  });
  return watching;
}
