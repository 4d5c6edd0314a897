/** Alternatives of one synchronous step, timed in turn. */
import { median } from './statistics.js';

const ROUNDS = 9;
const ROUND_MS = 50;

/** Prints the median of microseconds per call of each alternative, and how it compares with the first. */
export function compareSteps(title: string, steps: Readonly<Record<string, () => unknown>>): void {
  const names = Object.keys(steps);
  const times = new Map(names.map((name): [string, number[]] => [name, []]));
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const name of names) {
      const us = usPerCall(steps[name] as () => unknown);
      if (round > 0) times.get(name)?.push(us); // the first round warms up
    }
  }
  console.log(title);
  const first = median(times.get(names[0] ?? '') ?? []);
  for (const name of names) {
    const us = median(times.get(name) ?? []);
    console.log(
      `${us.toFixed(us < 100 ? 2 : 0).padStart(10)} us ${(us / first).toFixed(2).padStart(7)}x  ${name}`,
    );
  }
  console.log();
}

/** Keeps results alive, so that no step is compiled away. */
export let sink: unknown;

function usPerCall(step: () => unknown): number {
  let calls = 0;
  let batch = 1;
  const startedAtMs = performance.now();
  let elapsedMs = 0;
  while (elapsedMs < ROUND_MS) {
    for (let i = 0; i < batch; i += 1) sink = step();
    calls += batch;
    elapsedMs = performance.now() - startedAtMs;
    if (elapsedMs < ROUND_MS / 10) batch *= 2;
  }
  return (elapsedMs * 1000) / calls;
}
