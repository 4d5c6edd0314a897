/** Which model a start is for, and of whom its place is asked. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { ServeError } from '../../../../../protocol/errors.js';
import type { Admission } from '../../../../../supervisor/dispatch/arrivals.js';
import type { Job } from '../../../../../supervisor/dispatch/job.js';
import { ApiKeys } from '../../../../../supervisor/http/call/api-keys.js';
import type { Backend } from '../../../../../supervisor/http/call/backend.js';
import { Lobby } from '../../../../../supervisor/http/call/lobby.js';
import { createHandler } from '../../../../../supervisor/http/handler.js';
import { KeptJobs } from '../../../../../supervisor/jobs/kept-jobs.js';
import type { Models } from '../../../../../supervisor/models/models.js';
import { digestOf } from '../../../../../supervisor/options/api-key.js';
import { eventually } from '../../../../helpers/server.js';
import { RawConnection } from '../../../../helpers/raw-http.js';

const HEAD = { status: 200, contentType: 'application/json', headers: '', phrase: '' };

/** Models that answer every call with their name, and note what was asked of them. */
class Fakes {
  readonly notes: string[] = [];
  readonly models: Models;

  constructor(names: readonly string[], defaultName: string | null) {
    const all = names.map((name) => this.#model(name));
    const find = ({ name }: { name: string }): object => {
      const found = all.find(({ spec }) => spec.name === name);
      if (found === undefined)
        throw new ServeError('SERVE_MODEL_NOT_FOUND', `${name} is none of ${names.join(', ')}`);
      return found;
    };
    const standard = defaultName === null ? null : find({ name: defaultName });
    this.models = { default: standard, all: () => all, find } as unknown as Models;
  }

  #model(name: string): { spec: { name: string } } {
    const place: Admission = {
      begin: () => {},
      grow: (bytes) => void this.notes.push(`${name} grows by ${bytes}`),
      complete: () => {},
      release: () => {},
    };
    const answer = Buffer.from(JSON.stringify(name));
    return {
      spec: { name },
      routes: new Map([['/', { path: '/', kind: 'handler', input: 'any', webhook: '', maxBatch: 1 }]]),
      dispatcher: {
        admit: () => {
          this.notes.push(`${name} admits`);
          return place;
        },
        submit: (job: Job) => job.reply(HEAD, [answer], answer.length, 1),
      },
    } as unknown as { spec: { name: string } };
  }
}

async function startGateway(t: TestContext, fakes: Fakes, keys: readonly string[] = []): Promise<string> {
  let ids = 0;
  const jobs = new KeptJobs(() => String((ids += 1)));
  const backend = {
    models: fakes.models,
    options: { maxBody: 1e6, bodyTimeout: 1e4, corsOrigin: null },
    lobby: new Lobby(),
    posts: { count: 0 },
    keys: new ApiKeys(keys.map((key) => digestOf(key))),
    jobs,
    closing: () => false,
    inviteBody: () => {},
    onSettled: () => {},
    onRefused: () => {},
  } as unknown as Backend;
  const handler = createHandler(backend);
  const server = createServer((request, response) => handler.request(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    jobs.close();
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Reply {
  readonly message: string;
  readonly modelOutputs?: readonly unknown[];
}

async function start(url: string, body: object): Promise<unknown> {
  const response = await fetch(`${url}/start/v4/`, { method: 'POST', body: JSON.stringify(body) });
  const { message, modelOutputs } = (await response.json()) as Reply;
  return modelOutputs?.[0] ?? message;
}

const LONG = 'x'.repeat(200_000);

for (const [why, body, answer] of [
  ['names one', { modelKey: 'b' }, 'b'],
  ['names the default', { modelKey: 'a', modelInputs: { modelKey: 'b' } }, 'a'],
  ['names one behind a small input', { modelInputs: { x: 1 }, modelKey: 'b' }, 'b'],
  ['is missing: the default', { modelInputs: LONG }, 'a'],
  ['is no string: the default', { modelKey: 5 }, 'a'],
  ['comes behind more than 64 KiB: the default', { modelInputs: LONG, modelKey: 'b' }, 'a'],
  ['names none: an error', { modelKey: 'c' }, 'inference server error: c is none of a, b'],
] as const) {
  test(`with two models modelKey ${why}`, async (t) => {
    assert.equal(await start(await startGateway(t, new Fakes(['a', 'b'], 'a')), body), answer);
  });
}

test('with one model modelKey means nothing', async (t) => {
  const url = await startGateway(t, new Fakes(['a'], 'a'));
  for (const modelKey of ['a', 'whatever the client was given', 5])
    assert.equal(await start(url, { modelKey }), 'a');
});

test('with two models and no default one must be named', async (t) => {
  const url = await startGateway(t, new Fakes(['a', 'b'], null));
  assert.equal(await start(url, { modelKey: 'b' }), 'b');
  assert.match(String(await start(url, {})), /error: No model answers where none is named.* a, b/);
});

test('the place is asked of the model as soon as it is known, and counts what has arrived', async (t) => {
  const fakes = new Fakes(['a', 'b'], 'a');
  const connection = await RawConnection.open({ url: await startGateway(t, fakes) });
  const [before, after] = ['{"modelKey":"b",', '"modelInputs":1}'] as const;
  const length = before.length + after.length;
  connection.send(
    `POST /start/v4 HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n${before}`,
  );
  await eventually(
    () => fakes.notes.length === 2,
    5000,
    () => `noted: ${fakes.notes.join(', ')}`,
  );
  assert.deepEqual(fakes.notes, ['b admits', `b grows by ${before.length}`]);
  connection.send(after);
  const { body } = await connection.reply();
  assert.deepEqual((JSON.parse(body) as Reply).modelOutputs, ['b']);
  assert.deepEqual(fakes.notes.slice(2), [`b grows by ${after.length}`]);
  connection.destroy();
});

test('a client that has shown no key in its headers takes no place before the one in its body is known', async (t) => {
  const fakes = new Fakes(['a', 'b'], 'a');
  const url = await startGateway(t, fakes, ['right']);
  for (const modelKey of ['b', 'none of the two'])
    assert.match(String(await start(url, { modelKey, apiKey: 'wrong' })), /apiKey is none that is known/);
  assert.deepEqual(fakes.notes, []);
  const body = { modelKey: 'b', apiKey: 'right' };
  assert.equal(await start(url, body), 'b');
  assert.deepEqual(fakes.notes, ['b admits', `b grows by ${JSON.stringify(body).length}`]);
});
