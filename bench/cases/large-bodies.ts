/** Somebody sends or fetches a great deal: how long do others wait for an answer that takes the front no time? */
import { setTimeout as delay } from 'node:timers/promises';
import type { Bench, BenchCase } from '../case.js';
import { median, type Percentiles } from '../statistics.js';
import { postOnce } from '../post-once.js';
import type { Row } from '../report.js';
import { source } from '../servers/child-server.js';
import { jsonRequest } from './requests.js';

const BODY_BYTES = 95_000_000;
const RESULT_BYTES = 55_000_000;
const READERS = 8;
/** The work begins this long after the probes, and must end before them. */
const LEAD_MS = 200;
const MIN_PROBE_S = 6;

export const largeBodies: BenchCase = {
  name: 'large-bodies',
  async run(bench) {
    const { url } = await bench.startBanana(source('bench/apps/large.mjs'));
    const started = await postOnce(`${url}/start/v2/`, { modelInputs: { bytes: RESULT_BYTES } });
    const check = { longPoll: true, callID: (JSON.parse(started.text) as { callID: string }).callID };
    await expectSuccess(`${url}/check/v2/`, check);
    const body = { modelInputs: { bytes: 1, pad: 'x'.repeat(BODY_BYTES) } };
    const readers = Array<string>(READERS).fill(`${url}/check/v2/`);
    const alone: Percentiles[] = [];
    const sending: Percentiles[] = [];
    const reading: Percentiles[] = [];
    for (let round = 0; round < bench.duration.rounds; round += 1) {
      alone.push(await probeDuring(bench, url, () => Promise.resolve()));
      sending.push(await probeDuring(bench, url, () => expectSuccess(`${url}/start/v4/`, body)));
      reading.push(
        await probeDuring(bench, url, () =>
          Promise.all(readers.map((reader) => expectSuccess(reader, check))),
        ),
      );
    }
    return [
      row(`a gateway body of ${BODY_BYTES / 1e6} MB arrives: longest wait of others`, sending, alone),
      row(`${READERS} reads of a result of ${RESULT_BYTES / 1e6} MB: longest wait of others`, reading, alone),
    ];
  },
};

/** Measures how long one caller, in the generator's process, waits for the front meanwhile. No worker is asked. */
async function probeDuring(bench: Bench, url: string, work: () => Promise<unknown>): Promise<Percentiles> {
  const forMs = bench.secondsAtLeast(MIN_PROBE_S) * 1000;
  let isProbing = true;
  const probing = bench.generator
    .runClosed({
      request: { ...jsonRequest({ callID: 'unknown' }), url: `${url}/check/v4/` },
      connections: 1,
      durationMs: forMs,
      maxRequests: Infinity,
    })
    .finally(() => (isProbing = false));
  await delay(LEAD_MS);
  await work();
  if (!isProbing) throw new Error(`the work took longer than ${forMs} ms`);
  return (await probing).latencyMs;
}

async function expectSuccess(url: string, value: unknown): Promise<void> {
  const { status, text } = await postOnce(url, value);
  if (status !== 200 || !text.includes('"message":"success"'))
    throw new Error(`${url} answered ${status}: ${text.slice(0, 200)}`);
}

/** The longest wait of each round; the median of the rounds counts. */
function row(name: string, meanwhile: readonly Percentiles[], alone: readonly Percentiles[]): Row {
  const longestMs = median(meanwhile.map(({ max }) => max));
  return {
    name,
    ours: `${longestMs.toFixed(1)} ms`,
    baseline: `${median(alone.map(({ max }) => max)).toFixed(1)} ms alone`,
    value: longestMs,
    goal: { must: 50, better: 'lower', unit: 'ms' },
  };
}
