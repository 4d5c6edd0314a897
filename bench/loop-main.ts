/**
 * The app's `inference` in a bare loop, nothing around it: what a worker could reach at best.
 * `node loop-main.js APP MS` prints calls per second on stdout.
 */
import { pathToFileURL } from 'node:url';

const [, , path = '', durationMs = '1000'] = process.argv;
const { inference } = (await import(pathToFileURL(path).href)) as { inference: (input: unknown) => unknown };

const startedAtMs = performance.now();
const endAtMs = startedAtMs + Number(durationMs);
let calls = 0;
while (performance.now() < endAtMs) {
  await inference({});
  calls += 1;
}
console.log((calls / (performance.now() - startedAtMs)) * 1000);
