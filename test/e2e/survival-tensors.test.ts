/** kill -9 at random while calls with tensors run in batches: each gets one answer or error, and none begins twice. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeCues } from '../helpers/cues.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { startServer, type Server } from '../helpers/server.js';
import { CALM, ONE_AT_A_TIME, begins, startLoad, strike } from '../helpers/storm.js';
import { float32, infer, type GotTensor, type V2Answer } from '../helpers/v2.js';

const BATCH = 4;

const STRIKES = 4;

withEachRuntime(({ app }) => {
  test(
    'kill -9 under load: every call gets its own tensors or an error, a batch is lost per kill, none begins twice',
    { timeout: 240_000 },
    async (t) => {
      const cues = makeCues(t);
      const args = ['--workers', '2', '--batch-size', String(BATCH), '--name', 'm'];
      const server = await startServer(app('noted-tensors'), { t, env: cues.env, args });
      await server.until(({ model }) => model.workers.every(({ state }) => state === 'idle'));
      const load = startLoad((n) => send(server, n));
      const kills = await strike(server, { ...ONE_AT_A_TIME, strikes: STRIKES }, load);
      const calls = await load.finish();

      const times = begins(cues.notes());
      const outcomes = { answered: 0, lost: 0, notBegun: 0 };
      for (const { id, sent, answer } of calls) {
        const { status, outputs, error } = answer;
        if (status === 200) {
          outcomes.answered += 1;
          assert.equal(times(id), 1, `${id} was answered: it ran once`);
          assert.deepEqual(
            [answer.json['id'], outputs['n']?.data, outputs['x']],
            [id, [Number(id)], sent],
            `${id} got its own answer`,
          );
        } else if (status === 500) {
          outcomes.lost += 1;
          assert.equal(error, 'The worker died while running this call (signal SIGKILL).');
          assert.ok(times(id) <= 1, `${id} was lost: it ran once at most`);
        } else {
          outcomes.notBegun += 1;
          assert.match(`${status} ${String(error)}`, /^503 Two workers died before this call began/, id);
          assert.equal(times(id), 0, `${id} was told that it did not begin`);
        }
      }
      t.diagnostic(`${kills} kills, ${JSON.stringify(outcomes)}`);
      assert.ok(outcomes.answered >= STRIKES * CALM, 'there was load');
      assert.ok(outcomes.lost <= kills * BATCH, `${outcomes.lost} calls lost in ${kills} kills`);
      await server.stop('SIGINT', kills);
    },
  );
});

interface Sent {
  readonly id: string;
  readonly sent: GotTensor;
  readonly answer: V2Answer;
}

/** Sends tensors of mixed shapes, in JSON or as bytes. */
async function send(server: Server, n: number): Promise<Sent> {
  const shape = [1 + (n % 3), 1 + (n % 2)];
  const numbers = Array.from({ length: (shape[0] as number) * (shape[1] as number) }, (_, i) => n + i / 2);
  const sent: GotTensor = { shape, datatype: 'FP32', data: n % 4 < 2 ? numbers : float32(...numbers) };
  const answer = await infer(server, '/v2/models/m/infer', {
    id: String(n),
    inputs: [
      { name: 'n', shape: [1], datatype: 'INT64', data: [n] },
      { name: 'x', ...sent },
    ],
    outputs: [{ name: 'n' }, { name: 'x', parameters: { binary_data: Buffer.isBuffer(sent.data) } }],
  });
  return { id: String(n), sent, answer };
}
