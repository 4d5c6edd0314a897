/** A model of a chosen size. Each answer has the number of calls that its process answered before. */
const BUFFER_BYTES = 16 * 2 ** 20;
const buffers = [];
let calls = 0;

export function init() {
  const bytes = Number(process.env.BENCH_FILL_MB) * 2 ** 20;
  for (let filled = 0; filled < bytes; filled += BUFFER_BYTES) buffers.push(Buffer.alloc(BUFFER_BYTES, 1));
}

export function inference() {
  return { before: calls++, pid: process.pid, buffers: buffers.length };
}
