/** Notes each run in the file that the environment names, so that the bench can count what ran, and how often. */
import { appendFileSync } from 'node:fs';

export function inference({ n }) {
  appendFileSync(process.env.BENCH_NOTES, `${n}\n`);
  return { n, pid: process.pid };
}
