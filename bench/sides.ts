/** Our server with one worker beside in-process baselines, all with the same app; and how a comparison is told. */
import type { Bench } from './case.js';
import { medianOf, type Round, type Side } from './rounds.js';
import { processesOf } from './servers/banana.js';
import { BASELINE_NAMES, type BaselineKind } from './servers/baseline.js';
import { source } from './servers/child-server.js';

/** Ours first, then the baselines in the order given. */
export async function startSides(bench: Bench, app: string, kinds: readonly BaselineKind[]): Promise<Side[]> {
  const path = source(app);
  const ours = await bench.startBanana(path);
  const sides: Side[] = [{ name: 'ours', url: ours.url, pids: await processesOf(ours) }];
  for (const kind of kinds) {
    const { url, pid } = await bench.startBaseline(kind, path);
    sides.push({ name: BASELINE_NAMES[kind], url, pids: [pid] });
  }
  return sides;
}

export function rateText(rounds: readonly Round[]): string {
  return `${medianOf(rounds, ({ perSecond }) => perSecond).toFixed(0)} req/s`;
}

/** Where the CPU of each side went. */
export function cpuNote(
  title: string,
  sides: readonly Side[],
  results: readonly (readonly Round[])[],
): string {
  const parts = sides.map(({ name }, i) => {
    const rounds = results[i] as readonly Round[];
    const serverUs = medianOf(rounds, ({ serverCpuMs, ok }) => (serverCpuMs / ok) * 1000);
    const share = medianOf(rounds, ({ generatorShare }) => generatorShare);
    return `${name} ${serverUs.toFixed(0)} us (load generator ${(share * 100).toFixed(0)}% of all CPU)`;
  });
  return `${title}, server CPU per request: ${parts.join('; ')}.`;
}
