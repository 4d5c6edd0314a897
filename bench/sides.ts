/** Our server with one worker beside in-process baselines, all with the same app; and the lines of a comparison. */
import type { Bench } from './case.js';
import type { Goal, Row } from './report.js';
import { medianOf, medianRatio, type Role, type Round, type Side } from './rounds.js';
import { pidsOf } from './servers/banana.js';
import { BASELINE_NAMES, type BaselineKind } from './servers/baseline.js';
import { source, type ChildServer } from './servers/child-server.js';

/** Ours first, then the baselines in the order given. */
export async function startSides(bench: Bench, app: string, kinds: readonly BaselineKind[]): Promise<Side[]> {
  const path = source(app);
  const sides: Side[] = [await sideOf('ours', await bench.startBanana(path))];
  for (const kind of kinds) {
    const { url, pid } = await bench.startBaseline(kind, path);
    sides.push({ name: BASELINE_NAMES[kind], url, processes: [{ role: 'front', pid }] });
  }
  return sides;
}

/** Makes a side of a server of ours whose workers are ready. */
export async function sideOf(name: string, server: ChildServer): Promise<Side> {
  const [front = NaN, ...workers] = await pidsOf(server);
  const processes = workers.map((pid) => ({ role: 'worker' as const, pid }));
  return { name, url: server.url, processes: [{ role: 'front', pid: front }, ...processes] };
}

export function rateText(rounds: readonly Round[], digits = 0): string {
  return `${medianOf(rounds, ({ perSecond }) => perSecond).toFixed(digits)} req/s`;
}

/** CPU per request of our front, held against that of a baseline which does all the work in one process. */
export function frontCpuRow(
  name: string,
  [ours, baseline]: readonly [readonly Round[], readonly Round[]],
  goal: Goal | null,
): Row {
  return {
    name: `${name}: CPU per request of the front`,
    ours: cpuText(ours),
    baseline: cpuText(baseline),
    value: medianRatio(ours, baseline, (round) => cpuUs(round, 'front')),
    goal,
  };
}

/** CPU per request of our worker, held against that of another server of ours. */
export function workerCpuRow(
  name: string,
  [ours, other]: readonly [readonly Round[], readonly Round[]],
  goal: Goal | null,
): Row {
  return {
    name: `${name}: CPU per request of the worker`,
    ours: cpuText(ours),
    baseline: cpuText(other),
    value: medianRatio(ours, other, (round) => cpuUs(round, 'worker')),
    goal,
  };
}

/** Requests per second of ours, held against those of a baseline. */
export function rateRow(
  name: string,
  [ours, baseline]: readonly [readonly Round[], readonly Round[]],
  goal: Goal | null,
): Row {
  return {
    name,
    ours: rateText(ours),
    baseline: rateText(baseline),
    value: medianRatio(ours, baseline, ({ perSecond }) => perSecond),
    goal,
  };
}

export function serverCpuUs(round: Round): number {
  return cpuUs(round, 'front') + cpuUs(round, 'worker');
}

/** Returns a text such as `front 22.4 us, worker 8.5 us`, or one number for a baseline. */
export function cpuText(rounds: readonly Round[]): string {
  const front = medianOf(rounds, (round) => cpuUs(round, 'front'));
  const worker = medianOf(rounds, (round) => cpuUs(round, 'worker'));
  return worker === 0 ? inUs(front) : `front ${inUs(front)}, worker ${inUs(worker)}`;
}

/** Tells where the CPU time of each side went. */
export function cpuNote(
  title: string,
  sides: readonly Side[],
  results: readonly (readonly Round[])[],
): string {
  const parts = sides.map(({ name }, i) => {
    const rounds = results[i] as readonly Round[];
    const share = medianOf(rounds, ({ generatorShare }) => generatorShare);
    return `${name} ${cpuText(rounds)} (load generator ${(share * 100).toFixed(0)}% of all CPU)`;
  });
  return `${title}, CPU per request: ${parts.join('; ')}.`;
}

function cpuUs({ cpuMsOf, ok }: Round, role: Role): number {
  return (cpuMsOf[role] / ok) * 1000;
}

function inUs(us: number): string {
  return `${us.toFixed(us < 100 ? 1 : 0)} us`;
}
