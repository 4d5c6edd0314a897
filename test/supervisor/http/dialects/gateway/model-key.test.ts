/** The model of a start, and the time at which its queue admits the call. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../../../../../protocol/errors.js';
import { Place } from '../../../../../supervisor/dispatch/arrivals.js';
import type { Models } from '../../../../../supervisor/models/models.js';
import { eventually } from '../../../../helpers/server.js';
import { RawConnection } from '../../../../helpers/raw-http.js';
import {
  countedJobs,
  fakeModel,
  freeArrivals,
  pullJobs,
  serveHandler,
  type FakeModel,
} from '../../serve-handler.js';

const HEAD = { status: 200, contentType: 'application/json', headers: '', phrase: '' };

/** Models that answer every call with their name, and record the requests to their queue. */
class Fakes {
  readonly notes: string[] = [];
  readonly arrivals = freeArrivals();
  readonly models: Models;
  readonly jobs = countedJobs();

  constructor(names: readonly string[], defaultName: string | null) {
    const all = names.map((name) => this.#model(name));
    const find = ({ name }: { name: string }): object => {
      const found = all.find(({ spec }) => spec.name === name);
      if (found === undefined)
        throw new ServeError('SERVE_MODEL_NOT_FOUND', `${name} is not one of ${names.join(', ')}`);
      return found;
    };
    const standard = defaultName === null ? null : find({ name: defaultName });
    this.models = { default: standard, all: () => all, find } as unknown as Models;
  }

  #model(name: string): FakeModel {
    const answer = Buffer.from(JSON.stringify(name));
    pullJobs(this.jobs, name, (call) => call.reply(HEAD, [answer], answer.length, 1));
    return fakeModel(name, {
      admit: () => {
        this.notes.push(`${name} admits`);
        return new Place(this.arrivals);
      },
    });
  }
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
  ['names one after a small input', { modelInputs: { x: 1 }, modelKey: 'b' }, 'b'],
  ['is missing: the default', { modelInputs: LONG }, 'a'],
  ['is not a string: the default', { modelKey: 5 }, 'a'],
  ['comes after more than 64 KiB: the default', { modelInputs: LONG, modelKey: 'b' }, 'a'],
  ['names an unknown model: an error', { modelKey: 'c' }, 'inference server error: c is not one of a, b'],
] as const) {
  test(`with two models modelKey ${why}`, async (t) => {
    assert.equal(await start(await serveHandler(t, new Fakes(['a', 'b'], 'a')), body), answer);
  });
}

test('with one model modelKey is ignored', async (t) => {
  const url = await serveHandler(t, new Fakes(['a'], 'a'));
  for (const modelKey of ['a', 'whatever the client was given', 5])
    assert.equal(await start(url, { modelKey }), 'a');
});

test('with two models and no default, the start must name one', async (t) => {
  const url = await serveHandler(t, new Fakes(['a', 'b'], null));
  assert.equal(await start(url, { modelKey: 'b' }), 'b');
  assert.match(
    String(await start(url, {})),
    /error: The request names no model, and no model answers on \/; .* a, b/,
  );
});

test("the model's queue admits the call once the model is known, and counts the bytes that have arrived", async (t) => {
  const fakes = new Fakes(['a', 'b'], 'a');
  const connection = await RawConnection.open({ url: await serveHandler(t, fakes) });
  const [before, after] = ['{"modelKey":"b",', '"modelInputs":1}'] as const;
  const length = before.length + after.length;
  connection.send(
    `POST /start/v4 HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n${before}`,
  );
  await eventually(
    () => fakes.arrivals.bytes === before.length,
    60_000,
    () => `${fakes.arrivals.bytes} bytes; noted: ${fakes.notes.join(', ')}`,
  );
  assert.deepEqual(fakes.notes, ['b admits']);
  connection.send(after);
  const { body } = await connection.reply();
  assert.deepEqual((JSON.parse(body) as Reply).modelOutputs, ['b']);
  assert.deepEqual([fakes.arrivals.bytes, fakes.notes], [0, ['b admits']]);
  connection.destroy();
});

test('a client without a key in its headers is not admitted before the key in its body is checked', async (t) => {
  const fakes = new Fakes(['a', 'b'], 'a');
  const url = await serveHandler(t, { ...fakes, keys: ['right'] });
  for (const modelKey of ['b', 'none of the two'])
    assert.match(String(await start(url, { modelKey, apiKey: 'wrong' })), /apiKey is not valid/);
  assert.deepEqual(fakes.notes, []);
  const body = { modelKey: 'b', apiKey: 'right' };
  assert.equal(await start(url, body), 'b');
  assert.deepEqual(fakes.notes, ['b admits']);
});
