/** The app of `onnx-by-hand.mjs` without a server: reads a body, runs it, writes the answer, time and again; prints CPU us a call. */
import { readFileSync } from 'node:fs';
import { inference, init } from './onnx-by-hand.mjs';

const [body, seconds] = process.argv.slice(2);
const bytes = readFileSync(body);

async function loop(forMs) {
  let calls = 0;
  for (const endMs = performance.now() + forMs; performance.now() < endMs; calls += 1) {
    const answer = await inference(JSON.parse(bytes.toString()));
    JSON.stringify(answer, (_, value) => (ArrayBuffer.isView(value) ? Array.from(value) : value));
  }
  return calls;
}

await init({ worker: { threads: 1 } });
await loop(1000 * seconds);
const before = process.cpuUsage();
const calls = await loop(1000 * seconds);
const { user, system } = process.cpuUsage(before);
process.stdout.write(String((user + system) / calls));
