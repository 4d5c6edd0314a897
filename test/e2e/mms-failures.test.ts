/**
 * The table of how calls of a custom service fail. Each row is a batch of three calls over HTTP, of which one
 * makes it fail, whatever language the service is written in. The house's form of each code:
 * test/supervisor/http/dialects/failures.test.ts.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test, type TestContext } from 'node:test';
import { makeCues } from '../helpers/cues.js';
import { needs } from '../helpers/needs.js';
import { withEachRuntime, withOneRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { CLI, call, fixture, startServer, type Answer, type Server } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

const MODEL = 'fails-as-told';
const BATCH_OF_3 = ['--batch-size', '3', '--max-batch-delay', '1m'];

interface Row {
  /** The instruction for the service. */
  readonly told: string;
  /** Status, type and message on `/predictions`. */
  readonly mms: string;
  readonly whole: boolean;
  readonly dies?: true;
}

const row = (told: string, mms: string): Row => ({ told, mms, whole: true });
const alone = (told: string, mms: string): Row => ({ told, mms, whole: false });
const dies = (told: string, mms: string): Row => ({ ...row(told, mms), dies: true });

const INTERNAL = 'InternalServerException';

const ROWS: readonly Row[] = [
  row('throws a PredictionException', `513 ${INTERNAL}: no cat in here`),
  row('throws a PredictionException without a status', `500 ${INTERNAL}: no cat in here`),
  row('rejects with a PredictionException', `599 ${INTERNAL}: late`),
  row('throws an error', `503 ${INTERNAL}: Prediction failed`),
  row('throws an error about CUDA', `503 ${INTERNAL}: Prediction failed`),
  row('throws an error about memory', `503 ${INTERNAL}: Prediction failed`),
  row('runs out of memory', `507 ${INTERNAL}: Out of resources`),
  row('returns no list', `503 ${INTERNAL}: Invalid model predict output`),
  row('returns nothing', `503 ${INTERNAL}: Invalid model predict output`),
  row('returns too few', `503 ${INTERNAL}: number of batch response mismatched`),
  row('returns too many', `503 ${INTERNAL}: number of batch response mismatched`),
  alone('returns a PredictionException', `422 ${INTERNAL}: not this one`),
  alone('promises a PredictionException', `422 ${INTERNAL}: not this one`),
  alone('streams a PredictionException', `422 ${INTERNAL}: not this one`),
  alone('returns an error', `503 ${INTERNAL}: Prediction failed`),
  alone('returns what is no data', `503 ${INTERNAL}: Unsupported model output data type.`),
  alone('names a header as none can be', `503 ${INTERNAL}: Prediction failed`),
  alone('sets a header that no line can carry', `503 ${INTERNAL}: Prediction failed`),
  alone('streams under a header that no line can carry', `503 ${INTERNAL}: Prediction failed`),
  dies('exits', `500 ${INTERNAL}: Worker died.`),
  dies('kills itself', `500 ${INTERNAL}: Worker died.`),
  dies('never returns', `504 ${INTERNAL}: The call ran longer than 4000 ms (--run-timeout).`),
];

withEachRuntime(({ app }) => {
  describe('a batch of three calls of a service', { timeout: 300_000 }, () => {
    let server: Server;
    before(async () => {
      const args = [...BATCH_OF_3, '--run-timeout', '4s'];
      server = await startHere(app(MODEL), { args });
      await server.until(({ state }) => state === 'ready');
    });
    after(() => server.stop('SIGINT', ROWS.filter((each) => each.dies).length));

    for (const { told, mms, whole, dies: isDeadly } of ROWS)
      test(`one call ${told}: ${whole ? 'each call' : 'that call'} is answered ${mms}`, async () => {
        const [pid] = await pids(server);
        const [guilty, ...others] = await batch(server, `/predictions/${MODEL}`, told);
        assert.equal(mmsError(guilty), mms);
        for (const answer of others) {
          if (whole) assert.equal(mmsError(answer), mms);
          else assert.deepEqual([answer.status, answer.text], [200, `fine ${pid}`]);
        }
        // The callers of one that hangs are answered before it is killed.
        if (isDeadly === true) await server.until(({ model }) => model.workers[0]?.pid !== pid);
        else assert.deepEqual(await pids(server), [pid], 'the worker lives on');
      });

    test("one call throws a PredictionException, on the house's path: each call is answered 500", async () => {
      for (const answer of await batch(server, '/', 'throws a PredictionException'))
        assert.equal(houseError(answer), '500 SERVE_INFERENCE_FAILED');
    });

    test('one call sets its own status: its client gets that, and its body unchanged', async () => {
      const [answer, ...others] = await batch(server, `/predictions/${MODEL}`, 'sets a status');
      assert.deepEqual([answer.status, answer.text], [507, 'Invalid response']);
      for (const { status } of others) assert.equal(status, 200);
    });

    test('one call sets a header that cannot be sent: the log names the header and the model', async () => {
      await batch(server, `/predictions/${MODEL}`, 'names a header as none can be');
      await server.untilPrinted(
        /The model's response header is invalid: .*no token.*"model":"fails-as-told"/,
      );
    });

    test('one call is malformed: it alone is answered 400, and the others run', async () => {
      const path = `/predictions/${MODEL}`;
      const [pid] = await pids(server);
      const [guilty, ...others] = await Promise.all([post(server, path, '{'), ...fine(server, path, 2)]);
      assert.match(mmsError(guilty), /^400 BadRequestException: The body is not valid JSON: /);
      for (const { status } of others) assert.equal(status, 200);
      assert.deepEqual(await pids(server), [pid]);
    });
  });
});

test(
  'a batch that fills the JavaScript heap is answered 507 on the paths of Multi Model Server',
  LIMIT,
  async (t) => {
    const env = { NODE_OPTIONS: '--max-old-space-size=64' };
    const server = await startHere(fixture(`${MODEL}.mjs`), {
      t,
      args: BATCH_OF_3,
      env,
      expectedRestarts: 1,
    });
    const answers = await batch(server, `/predictions/${MODEL}`, 'fills the heap');
    for (const answer of answers) assert.equal(mmsError(answer), `507 ${INTERNAL}: Worker died.`);
    await server.stop();
  },
);

/** Three calls of one batch: one that makes it fail, and two that would be fine. */
async function batch(server: Server, path: string, told: string): Promise<[Answer, Answer, Answer]> {
  const guilty = post(server, path, JSON.stringify({ told }));
  return (await Promise.all([guilty, ...fine(server, path, 2)])) as [Answer, Answer, Answer];
}

function fine(server: Server, path: string, count: number): Promise<Answer>[] {
  return Array.from({ length: count }, () => post(server, path, '{"told":"fine"}'));
}

function post(server: Server, path: string, body: string): Promise<Answer> {
  return call(server.url + path, body, { 'content-type': 'application/json' });
}

async function pids(server: Server): Promise<(number | null)[]> {
  const { model } = await server.until(({ state }) => state === 'ready');
  return model.workers.map(({ pid }) => pid);
}

function mmsError(answer: Answer): string {
  const { code, type, message } = answer.json<{ code: number; type: string; message: string }>();
  assert.equal(code, answer.status);
  return `${code} ${type}: ${message}`;
}

function houseError(answer: Answer): string {
  return `${answer.status} ${answer.json<{ error: { code: string } }>().error.code}`;
}

/** A `banana-serve` that reads what its cgroup counts from this file. Needs `unshare` and `root`. */
function withMemoryEvents(t: TestContext): { command: string; count(oomKills: number): void } {
  const folder = mkdtempSync(join(tmpdir(), 'banana-cgroup-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const command = join(folder, 'banana-serve');
  const mount = `mount --bind "$0" /sys/fs/cgroup && exec "$@"`;
  const program = `exec unshare --mount sh -c '${mount}' '${folder}' '${process.execPath}' '${CLI}' "$@"`;
  writeFileSync(command, `#!/bin/sh\n${program}\n`, { mode: 0o755 });
  return {
    command,
    count: (oomKills) => writeFileSync(join(folder, 'memory.events'), `oom 9\noom_kill ${oomKills}\n`),
  };
}

const HAS_CGROUPS = existsSync('/sys/fs/cgroup') ? false : 'there is no /sys/fs/cgroup';

withOneRuntime(({ app }) => {
  test(
    'a call whose worker the kernel kills is 507 if its cgroup counts one more, and 500 if not',
    { ...LIMIT, skip: HAS_CGROUPS || needs('unshare', 'root') },
    async (t) => {
      const cues = makeCues(t);
      const { command, count } = withMemoryEvents(t);
      count(3);
      const options = { t, command, env: cues.env, expectedRestarts: 2 };
      const server = await startServer(app('works'), options);
      for (const [id, kills, said] of [
        ['first', 3, `500 ${INTERNAL}: Worker died.`],
        ['second', 4, `507 ${INTERNAL}: Worker died.`],
      ] as const) {
        const headers = { 'content-type': 'application/json', 'x-request-id': id };
        const answer = call(`${server.url}/predictions/works`, '{"until":"never"}', headers);
        await cues.untilNoted(`begun ${id}`);
        const pid = (await server.status()).model.workers[0]?.pid;
        assert.ok(typeof pid === 'number');
        count(kills);
        process.kill(pid, 'SIGKILL');
        assert.equal(mmsError(await answer), said);
      }
      await server.stop();
    },
  );
});
