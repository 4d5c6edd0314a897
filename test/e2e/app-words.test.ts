/** Lines and error messages that an app wrote: who may read them in `/status`, in jobs and in the management API. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ERRORS } from '../../protocol/errors.js';
import { managementOf } from '../helpers/managed-command.js';
import { RawConnection } from '../helpers/raw-http.js';
import { eventually, fixture, type Server, type Status } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };
const APPS = fixture('lib').replace(/\/lib$/, '');
const BROKEN = `broken=${fixture('throws-in-init.mjs')}`;
const KEY = 's3cret';

type Headers = Readonly<Record<string, string>>;

/** Asks over loopback. */
function ask(
  server: Pick<Server, 'url'>,
  path: string,
  headers: Headers,
): ReturnType<typeof RawConnection.ask> {
  const all = { Host: new URL(server.url).host, ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return RawConnection.ask(server, `GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
}

async function read<Body>(server: Pick<Server, 'url'>, path: string, headers: Headers = {}): Promise<Body> {
  const { body, status } = await ask(server, path, headers);
  assert.equal(status, 200, body);
  return JSON.parse(body) as Body;
}

interface JobPage {
  readonly error: { readonly code: string; readonly message: string } | null;
}

interface Described {
  readonly workers: readonly { readonly lastError?: string }[];
}

/** Reads the words of the broken model's death and of a job that its app refused. */
async function readWords(server: Server, job: string, headers: Headers): Promise<readonly [string, string]> {
  const { models } = await read<Status>(server, '/status', headers);
  const { error } = await read<JobPage>(server, `/_k/jobs/${job}`, headers);
  assert.equal(error?.code, 'SERVE_HTTP_ERROR');
  const result = await ask(server, `/_k/jobs/${job}/result`, headers);
  const told = (JSON.parse(result.body) as JobPage).error?.message;
  assert.equal(told, error.message === '' ? ERRORS.SERVE_HTTP_ERROR.message : error.message);
  const exit = models.find(({ name }) => name === 'broken')?.workers[0]?.lastExit;
  assert.ok(exit !== null && exit !== undefined, 'the model has died');
  return [exit.why, error.message];
}

async function lastError(server: Server, headers: Headers): Promise<string> {
  const { managementUrl } = await managementOf(server);
  const described = await read<Described[]>({ url: managementUrl }, '/models/broken/all', headers);
  return described[0]?.workers[0]?.lastError ?? '';
}

async function startRefusedJob({ url }: Pick<Server, 'url'>, key: Headers): Promise<string> {
  const headers = { 'content-type': 'application/json', ...key };
  const body = JSON.stringify({ how: 'throws an HttpError' });
  const reply = await fetch(`${url}/later`, { method: 'POST', headers, body });
  const id = reply.headers.get('x-banana-job-id') ?? '';
  const isRefused = async (): Promise<boolean> =>
    (await read<JobPage>({ url }, `/_k/jobs/${id}`, key)).error !== null;
  await eventually(isRefused, 60_000, () => `job ${id} does not end`);
  return id;
}

const ARGS = ['--model', BROKEN, '--restart-limit', '0', '--model-store', APPS, '--management-port', '0'];

describe('the words of an app on a server without a key', LIMIT, () => {
  const shared = shareHere(fixture('refuses-potassium.mjs'), { args: ARGS });
  for (const [title, headers, isShown] of [
    ['a program of this machine reads in /status and in jobs', {}, true],
    ['a page does not read in /status and in jobs', { Origin: 'http://127.0.0.1' }, false],
    ['a name that leads here does not read in /status and in jobs', { Host: 'evil.example' }, false],
    [
      'a client behind a proxy does not read in /status and in jobs',
      { 'X-Forwarded-For': '10.0.0.7' },
      false,
    ],
  ] as const) {
    test(title, async () => {
      const { server } = shared;
      await server.until(({ models }) => models[1]?.state === 'unhealthy');
      const [death, job] = await readWords(server, await startRefusedJob(server, {}), headers);
      assert.match(death, isShown ? /the weights are missing/ : /^$/);
      assert.match(job, isShown ? /./ : /^$/);
      if (!isShown) assert.equal((await ask(server, '/_k/live?log', headers)).status, 403);
    });
  }

  test('a client behind a proxy does not read in the management API either', async () => {
    const { server } = shared;
    await server.until(({ models }) => models[1]?.state === 'unhealthy');
    assert.match(await lastError(server, {}), /the weights are missing/);
    assert.doesNotMatch(await lastError(server, { 'X-Forwarded-For': '10.0.0.7' }), /weights/);
  });
});

describe('the words of an app on a server with a key', LIMIT, () => {
  const args = [...ARGS, '--api-key', KEY];
  const shared = shareHere(fixture('refuses-potassium.mjs'), { args });

  test('are for everybody who has it, from wherever', async () => {
    const { server } = shared;
    await server.until(({ models }) => models[1]?.state === 'unhealthy');
    const key = { 'x-banana-api-key': KEY };
    const headers = { ...key, 'X-Forwarded-For': '10.0.0.7', Host: 'model.example' };
    const [death, job] = await readWords(server, await startRefusedJob(server, key), headers);
    assert.match(death, /the weights are missing/);
    assert.match(job, /./);
    assert.match(await lastError(server, headers), /the weights are missing/);
  });
});
