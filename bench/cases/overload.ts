/** Twice the load that can be served, from strangers who do not wait: is the capacity spent on answers that count? */
import type { BenchCase } from '../case.js';
import type { OpenResult } from '../load/plan.js';
import { measureOnce, type Round } from '../rounds.js';
import { source } from '../servers/child-server.js';
import { cpuNote, rateText, sideOf } from '../sides.js';
import { median } from '../statistics.js';
import { jsonRequest } from './requests.js';

const DEADLINE_MS = 100;
const OVERLOAD = 2;
const MIN_SECONDS = 3;

export const overload: BenchCase = {
  name: 'overload',
  async run(bench) {
    const seconds = bench.secondsAtLeast(MIN_SECONDS);
    const server = await bench.startBanana(source('bench/apps/busy.mjs'));
    const side = await sideOf('ours', server);
    const patient = jsonRequest({});
    const hasty = {
      ...patient,
      headers: { ...patient.headers, 'X-Request-Timeout-Seconds': String(DEADLINE_MS / 1000) },
    };
    const capacities: Round[] = [];
    const runs: OpenResult[] = [];
    for (let round = 0; round < bench.duration.rounds; round += 1) {
      const capacity = await measureOnce(
        bench.generator,
        side,
        { request: patient, connections: 4 },
        seconds,
      );
      capacities.push(capacity);
      runs.push(
        await bench.generator.runOpen({
          request: { ...hasty, url: side.url },
          ratePerSecond: OVERLOAD * capacity.perSecond,
          durationMs: seconds * 1000,
          deadlineMs: DEADLINE_MS,
          maxConnections: 512,
          seed: round + 1,
        }),
      );
    }
    bench.note(cpuNote('10 ms model, c=4', [side], [capacities]));
    bench.note(outcomeNote(runs));
    const goodPerSecond = runs.map(({ good, elapsedMs }) => (good / elapsedMs) * 1000);
    return [
      {
        name: '2x overload, 10 ms model, 100 ms deadline: goodput of capacity',
        ours: `${median(goodPerSecond).toFixed(1)} good/s`,
        baseline: rateText(capacities, 1),
        value: median(goodPerSecond.map((rate, i) => (100 * rate) / (capacities[i] as Round).perSecond)),
        goal: { must: 95, stretch: 99, better: 'higher', unit: '%' },
      },
    ];
  },
};

function outcomeNote(runs: readonly OpenResult[]): string {
  const sum = (count: (run: OpenResult) => number): number =>
    runs.reduce((total, run) => total + count(run), 0);
  const sent = sum((run) => run.sent);
  const share = (count: number): string => `${((100 * count) / sent).toFixed(1)}%`;
  const statuses = [...new Set(runs.flatMap(({ refused }) => Object.keys(refused)))].sort();
  const refused = statuses.map((status) => `${status} ${share(sum((run) => run.refused[status] ?? 0))}`);
  const outcomes = [
    `200 in time ${share(sum((run) => run.good))}`,
    `200 too late ${share(sum((run) => run.late))}`,
    ...refused,
    `lost ${share(sum((run) => run.lost))}`,
  ];
  const p99 = median(runs.map(({ latencyMs }) => latencyMs.p99));
  const lag = median(runs.map(({ sendLagMs }) => sendLagMs.p99));
  return (
    `2x overload, of ${sent} requests: ${outcomes.join(', ')}; p99 of the answers in time ${p99.toFixed(0)} ms; ` +
    `requests were written at most ${lag.toFixed(1)} ms (p99) after their Poisson time.`
  );
}
