/** Thousands who wait for one long call, each with a connection of its own: does the front stay quick, and idle? */
import { once } from 'node:events';
import { Agent, request, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { BenchCase } from '../case.js';
import { postOnce } from '../post-once.js';
import { cpuSecondsOf, rssMbOf } from '../proc.js';
import { source } from '../servers/child-server.js';
import { Samples, type Percentiles } from '../statistics.js';

export const POLLS = 2000;
/** Time for the polls to arrive; the rest of a round is for the probes. */
const ARRIVAL_S = 5;
const MIN_PROBE_S = 4;
/** The front's CPU is read over a time without new requests. */
const IDLE_MS = 1000;

export const longPolls: BenchCase = {
  name: 'long-polls',
  async run(bench) {
    const probeS = bench.secondsAtLeast(MIN_PROBE_S);
    const server = await bench.startBanana(source('bench/apps/waits.mjs'));
    const before = await probe(server.url, probeS);
    const rssBeforeMb = rssMbOf(server.pid);
    const seconds = ARRIVAL_S + probeS + 2 * (IDLE_MS / 1000);
    const endsAtMs = performance.now() + seconds * 1000;
    const started = await postOnce(`${server.url}/start/v2/`, { modelInputs: { seconds } });
    const { callID } = JSON.parse(started.text) as { callID: string };
    const polls = await Promise.all(Array.from({ length: POLLS }, () => openPoll(server.url, callID)));
    const told = Promise.all(polls.map(whenTold));
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    const cpuBefore = cpuSecondsOf(server.pid);
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    const idleCpuMs = (cpuSecondsOf(server.pid) - cpuBefore) * 1000;
    const rssMb = rssMbOf(server.pid);
    const during = await probe(server.url, probeS);
    if (performance.now() > endsAtMs) throw new Error('the call ended while /readyz was measured');
    const toldAtMs = await told;
    const spreadMs = Math.max(...toldAtMs) - Math.min(...toldAtMs);
    bench.note(
      `${POLLS} long polls: /readyz p50 ${during.p50.toFixed(2)} ms, max ${during.max.toFixed(1)} ms ` +
        `(without them p50 ${before.p50.toFixed(2)}, p99 ${before.p99.toFixed(2)} ms); the front used ` +
        `${idleCpuMs.toFixed(0)} ms of CPU in ${IDLE_MS / 1000} s of holding them, and ` +
        `${(((rssMb - rssBeforeMb) * 1024) / POLLS).toFixed(0)} kB for each; the last was told ` +
        `${spreadMs.toFixed(0)} ms after the first.`,
    );
    return [
      {
        name: `${POLLS} long polls held: p99 of /readyz meanwhile`,
        ours: `${during.p99.toFixed(2)} ms`,
        baseline: `${before.p99.toFixed(2)} ms`,
        value: during.p99,
        goal: { must: 20, better: 'lower', unit: 'ms' },
      },
    ];
  },
};

/** Measures how long `/readyz` takes, asked again and again on one connection. */
export async function probe(url: string, seconds: number): Promise<Percentiles> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const samples = new Samples(1e6);
  const endMs = performance.now() + seconds * 1000;
  while (performance.now() < endMs) {
    const askedAtMs = performance.now();
    const [response] = (await once(request(`${url}/readyz`, { agent }).end(), 'response')) as [
      IncomingMessage,
    ];
    await once(response.resume(), 'end');
    if (response.statusCode !== 200) throw new Error(`/readyz answered ${response.statusCode}`);
    samples.add(performance.now() - askedAtMs);
  }
  agent.destroy();
  return samples.percentiles();
}

export async function openPoll(url: string, callID: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  const body = JSON.stringify({ longPoll: true, callID });
  socket.write(`POST /check/v2/ HTTP/1.1\r\nHost: bench\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  return socket;
}

/** Resolves with the time at which the result was there. */
export async function whenTold(socket: Socket): Promise<number> {
  const [data] = (await once(socket, 'data')) as [Buffer];
  const atMs = performance.now();
  if (!data.includes('"message":"success"')) throw new Error(`a poll was told: ${data.toString('latin1')}`);
  socket.destroy();
  return atMs;
}
