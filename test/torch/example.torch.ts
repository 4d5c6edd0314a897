/** `npm run test:torch`: the example on torch, with Debian's python3-torch, which is too large for every test run. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROOT, call, startServer } from '../helpers/server.js';

/** The interpreter that Debian's packages are for. */
const PYTHON = '/usr/bin/python3';

const LIMIT = { timeout: 300_000 };

test('the example on torch answers what it has learned, one call or several in one run', LIMIT, async (t) => {
  const args = ['--python', PYTHON, '--batch-size', '4', '--max-batch-delay', '50ms'];
  const server = await startServer(`${ROOT}examples/python/torch/app.py`, { t, args });
  await server.until(({ state }) => state === 'ready', 240_000);
  await server.untilPrinted('learned the sine');
  const asked = [[0], [0.5, 1], [Math.PI / 2, -Math.PI / 2, 2]];
  const answers = await Promise.all(asked.map((angles) => call(server.url, JSON.stringify({ angles }))));
  for (const [i, answer] of answers.entries()) {
    assert.equal(answer.status, 200, answer.text);
    const { sines } = answer.json<{ sines: number[] }>();
    assert.equal(sines.length, asked[i]?.length);
    for (const [j, sine] of sines.entries()) {
      const truth = Math.sin(asked[i]?.[j] ?? NaN);
      assert.ok(Math.abs(sine - truth) < 0.1, `${sine} for ${truth}`);
    }
  }
  const refused = await call(server.url, '{"angles": ["north"]}');
  assert.equal(refused.status, 500);
  await server.stop();
});
