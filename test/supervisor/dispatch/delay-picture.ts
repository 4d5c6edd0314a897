/** Simulates the effect of `--max-batch-delay` on five loads: the picture in docs/batching.md. */
import { poisson, simulate, type Simulated } from './simulator.js';
import { seeded } from '../../helpers/random.js';

const CALLS = 10_000;
const BATCH_SIZE = 32;
const RUN_MS = 5;
const ITEM_MS = 0.2;
/** Calls per ms of a worker whose batches are all full. */
const CAPACITY = BATCH_SIZE / (RUN_MS + ITEM_MS * BATCH_SIZE);
const DELAYS_MS = [0, 5, 10];
/** Parts of the capacity that strangers ask for. */
const SHARES = [0.05, 0.9];
const CALLERS = [4, 128];
/** Mean time from an answer to the same caller's next call. */
const PAUSE_MS = 1;
const BAR = 16;

/** One line per load and delay, with a bar; deterministic. */
export function delayPicture(): string {
  const open = SHARES.map((share) => DELAYS_MS.map((delayMs) => strangers(share, delayMs)));
  const closed = CALLERS.map((callers) => DELAYS_MS.map((delayMs) => loop(callers, delayMs)));
  const most = CAPACITY * 1000;
  const lines = [
    `A model of ${RUN_MS} ms a run and ${ITEM_MS} ms a call, one worker, --batch-size ${BATCH_SIZE}: ${most.toFixed(0)} calls/s at most.`,
    '',
    'Independent callers                            p50 ms  p99 ms  calls in a batch  time the worker is busy',
    ...SHARES.flatMap((share, i) => rows(`${percent(share)} of capacity`, open[i] as Told[], openRow)),
    '',
    'Callers that call again after each answer      p50 ms  p99 ms  calls in a batch  calls/s',
    ...CALLERS.flatMap((callers, i) => rows(`${callers} callers`, closed[i] as Told[], closedRow)),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

interface Told {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly callsPerBatch: number;
  readonly busy: number;
  readonly perSecond: number;
}

function rows(name: string, told: readonly Told[], last: (told: Told) => string): string[] {
  return told.map((one, i) => {
    const delay = `delay ${String(DELAYS_MS[i]).padStart(2)} ms`;
    const cells = [one.p50Ms, one.p99Ms].map((ms) => ms.toFixed(1).padStart(6)).join('  ');
    const size = one.callsPerBatch.toFixed(1).padStart(16);
    return `  ${(i === 0 ? name : '').padEnd(28)}${delay}     ${cells}  ${size}  ${last(one)}`;
  });
}

function openRow({ busy }: Told): string {
  return `${percent(busy).padStart(4)} ${bar(busy)}`;
}

function closedRow({ perSecond }: Told): string {
  return `${perSecond.toFixed(0).padStart(4)} ${bar(perSecond / 1000 / CAPACITY)}`;
}

function bar(share: number): string {
  return '#'.repeat(Math.round(BAR * share));
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)}%`;
}

function strangers(share: number, delayMs: number): Told {
  const arrivals = poisson(CALLS, share * CAPACITY, seeded(1));
  return tell(simulate({ ...model(delayMs), arrivals }));
}

function loop(callers: number, delayMs: number): Told {
  const random = seeded(1);
  const pauseMs = (): number => -Math.log(1 - random()) * PAUSE_MS;
  const arrivals = Array.from({ length: callers }, () => ({ atMs: pauseMs() }));
  let left = CALLS - callers;
  const told = simulate(
    { ...model(delayMs), arrivals: arrivals.sort((a, b) => a.atMs - b.atMs) },
    {
      onEnded({ calls }, nowMs) {
        left -= calls.length;
        return left < 0 ? [] : calls.map(() => ({ atMs: nowMs + pauseMs() }));
      },
    },
  );
  return tell(told);
}

function model(maxBatchDelayMs: number) {
  const runMs = (calls: number): number => RUN_MS + ITEM_MS * calls;
  return { workers: 1, runMs, rules: { batchSize: BATCH_SIZE, maxBatchDelayMs } };
}

function tell({ calls, batches }: Simulated): Told {
  const latenciesMs = calls.map(({ atMs, endedAtMs }) => endedAtMs - atMs).sort((a, b) => a - b);
  const at = (share: number): number => latenciesMs[Math.ceil(share * calls.length) - 1] as number;
  const tookMs = Math.max(...batches.map(({ endsAtMs }) => endsAtMs));
  const busyMs = batches.reduce((sum, { startedAtMs, endsAtMs }) => sum + endsAtMs - startedAtMs, 0);
  return {
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    callsPerBatch: calls.length / batches.length,
    busy: busyMs / tookMs,
    perSecond: (1000 * calls.length) / tookMs,
  };
}
