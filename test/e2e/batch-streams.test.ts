/** Streams of calls that run together, whatever the language of the app. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask } from '../helpers/ask.js';
import { makeCues } from '../helpers/cues.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { type Server } from '../helpers/server.js';
import { openStream } from '../helpers/stream.js';

const LIMIT = { timeout: 240_000 };

withEachRuntime(({ app }) => {
  test('a batch of streams whose clients all leave costs no worker', LIMIT, async (t) => {
    const cues = makeCues(t);
    const server = await startHere(app('batch-streams'), { t, env: cues.env, args: ['--workers', '1'] });
    const pids = await pidsOfBatch(server);
    const streams = await Promise.all(['one', 'two'].map((name) => openStream(server, name)));
    for (const stream of streams) stream.destroy();
    await cues.untilNoted('one is closed');
    await cues.untilNoted('two is closed');
    assert.deepEqual(await pidsOfBatch(server), pids);
    await server.stop();
  });
});

/** The process that answered each of two calls that ran together. */
async function pidsOfBatch(server: Server): Promise<number[]> {
  const answers = await Promise.all([ask(server, ''), ask(server, '')]);
  for (const { status, text } of answers) assert.equal(status, 200, text);
  return answers.map((answer) => answer.json<{ pid: number }>().pid);
}
