/**
 * A model of a chosen size, to be killed. It keeps a socket open to the bench: the kernel closes it with the
 * worker's other files, so its end is the moment at which the death can be seen from outside.
 */
import { once } from 'node:events';
import { connect } from 'node:net';

const BUFFER_BYTES = 16 * 2 ** 20;
const buffers = [];
let initMs = 0;

export async function init() {
  const startedAtMs = performance.now();
  const bytes = Number(process.env.BENCH_FILL_MB) * 2 ** 20;
  for (let filled = 0; filled < bytes; filled += BUFFER_BYTES) buffers.push(Buffer.alloc(BUFFER_BYTES, 1));
  const tether = connect(Number(process.env.BENCH_TETHER_PORT), '127.0.0.1');
  await once(tether, 'connect');
  tether.write(`${process.pid}\n`);
  tether.unref();
  initMs = performance.now() - startedAtMs;
}

export function inference({ busyMs }) {
  const endAtMs = performance.now() + busyMs;
  while (performance.now() < endAtMs);
  return { initMs, pid: process.pid, buffers: buffers.length };
}
