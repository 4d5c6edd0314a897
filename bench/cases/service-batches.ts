/** A custom service whose runs cost 5 ms and 0.2 ms for each item, in batches of up to 8: are its batches full, one after another? */
import { answerOf } from '../answers.js';
import type { BenchCase } from '../case.js';
import { measureOnce, medianOf, type Round, type Side } from '../rounds.js';
import { source } from '../servers/child-server.js';
import { cpuNote, rateText, sideOf } from '../sides.js';
import { jsonRequest } from './requests.js';

const [RUN_MS, ITEM_MS, BATCH_SIZE, DELAY_MS] = [5, 0.2, 8, 5];
/** Calls per second of a worker whose batches are all full. */
const CAPACITY = (1000 * BATCH_SIZE) / (RUN_MS + ITEM_MS * BATCH_SIZE);

export const serviceBatches: BenchCase = {
  name: 'service-batches',
  async run(bench) {
    const { generator, duration } = bench;
    const env = { BANANA_BATCH_SIZE: String(BATCH_SIZE), BANANA_MAX_BATCH_DELAY: `${DELAY_MS}ms` };
    const started = await sideOf(
      'service',
      await bench.startBanana(source('bench/apps/service-batch.mjs'), { env }),
    );
    const side: Side = { ...started, url: `${started.url}/predictions/service-batch` };
    const load = { request: jsonRequest({}), connections: 4 * BATCH_SIZE };
    await answerOf({ ...load.request, url: side.url });
    await measureOnce(generator, side, load, 2 * duration.secondsPerRound); // warm-up
    const ours: Round[] = [];
    for (let round = 0; round < duration.rounds; round += 1) {
      ours.push(await measureOnce(generator, side, load, duration.secondsPerRound));
    }
    bench.note(cpuNote('custom service in batches, c=32', [side], [ours]));
    return [
      {
        name: 'custom service, batches of up to 8, 5 ms + 0.2 ms each, c=32: of full batches without a pause',
        ours: rateText(ours),
        baseline: `${CAPACITY.toFixed(0)} calls/s`,
        value: medianOf(ours, ({ perSecond }) => (100 * perSecond) / CAPACITY),
        goal: { must: 95, better: 'higher', unit: '%' },
      },
    ];
  },
};
