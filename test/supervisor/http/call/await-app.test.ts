/** Pages that need the app's description of itself wait for it as calls wait for their route. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { ServeError } from '../../../../protocol/errors.js';
import type { LoadedInfo } from '../../../../protocol/wire/messages.js';
import type { Admission } from '../../../../supervisor/dispatch/arrivals.js';
import { awaitInfo } from '../../../../supervisor/http/call/await-app.js';
import { banana } from '../../../../supervisor/http/dialects/banana.js';
import type { Dialect } from '../../../../supervisor/http/dialects/dialect.js';
import type { Model } from '../../../../supervisor/models/model.js';
import { Waiters } from '../../../../supervisor/models/model-health.js';
import { eventually } from '../../../helpers/server.js';
import { serveHandler, type ServedParts } from '../serve-handler.js';

const LIMIT = { timeout: 60_000 };
const INFO: LoadedInfo = { routes: [], modelOptions: {}, example: '{"a":1}' };

/** A model without a worker, with places in its queue. */
class LoadingModel {
  readonly options = { queueTimeout: 50_000 };
  readonly health = { takesCalls: true };
  readonly crew = { wanted: 1 };
  readonly dispatcher = { admit: (): Admission => this.#admit(), checkDeadline: () => {} };
  info: LoadedInfo | null = null;
  /** Why no worker will ever come. */
  error: ServeError | null = null;
  freePlaces = 1;
  readonly #waiters = new Waiters();

  load(): void {
    this.info = INFO;
    this.#waiters.wake();
  }

  fail(error: ServeError): void {
    this.error = error;
    this.#waiters.wake();
  }

  whenLoaded(givenUp: Promise<unknown>): Promise<unknown> {
    return this.#waiters.wait(() => this.#find(), givenUp);
  }

  #find(): LoadedInfo | null {
    if (this.error !== null) throw this.error;
    return this.info;
  }

  #admit(): Admission {
    if (this.freePlaces === 0) throw new ServeError('SERVE_QUEUE_FULL');
    this.freePlaces -= 1;
    const release = (): void => void (this.freePlaces += 1);
    return { begin: () => {}, grow: () => {}, complete: () => {}, release };
  }
}

interface Bench {
  readonly model: LoadingModel;
  readonly url: string;
  /** Codes of the errors that pages answered. */
  readonly refused: string[];
}

/** Serves a page with the example of the app. */
async function openBench(t: TestContext): Promise<Bench> {
  const model = new LoadingModel();
  const refused: string[] = [];
  const page: Dialect = {
    ...banana,
    claim: () => ({
      auth: 'call',
      counts: false,
      methods: 'GET',
      act: {
        write: async (ctx, context) => {
          ctx.body = (await awaitInfo(context, model as unknown as Model)).example;
        },
      },
    }),
    fail: (error, ...rest) => {
      refused.push(error.code);
      return banana.fail(error, ...rest);
    },
  };
  const dialects = { inOrder: [page], default: banana };
  const url = await serveHandler(t, { models: null as unknown as ServedParts['models'], dialects });
  return { model, url, refused };
}

const untilWaiting = (model: LoadingModel): Promise<void> =>
  eventually(
    () => model.freePlaces === 0,
    60_000,
    () => 'the page has no place in the queue',
  );

test(
  'a page waits in a place of the queue until the app is loaded, and then needs none',
  LIMIT,
  async (t) => {
    const { model, url } = await openBench(t);
    const page = fetch(url);
    await untilWaiting(model);
    model.load();
    assert.equal(await (await page).text(), INFO.example);
    assert.equal(model.freePlaces, 1);
    model.freePlaces = 0;
    assert.equal(await (await fetch(url)).text(), INFO.example);
  },
);

test('a page is refused as a call is: full queue, timeout, client limit, no worker', LIMIT, async (t) => {
  const { model, url, refused } = await openBench(t);
  const limited = (seconds: string): RequestInit => ({ headers: { 'x-request-timeout-seconds': seconds } });
  model.freePlaces = 0;
  await fetch(url);
  model.freePlaces = 1;
  await fetch(url, limited('0.01'));
  await fetch(url, limited('soon'));
  model.options.queueTimeout = 10;
  await fetch(url);
  model.options.queueTimeout = 50_000;
  const page = fetch(url);
  await untilWaiting(model);
  model.fail(new ServeError('SERVE_NOT_READY'));
  await page;
  assert.deepEqual(refused, [
    'SERVE_QUEUE_FULL',
    'SERVE_DEADLINE',
    'SERVE_BAD_REQUEST',
    'SERVE_QUEUE_TIMEOUT',
    'SERVE_NOT_READY',
  ]);
  assert.equal(model.freePlaces, 1);
});

test('a client that leaves a page gives back its place', LIMIT, async (t) => {
  const { model, url } = await openBench(t);
  const leaving = new AbortController();
  const page = fetch(url, { signal: leaving.signal });
  await untilWaiting(model);
  leaving.abort();
  await assert.rejects(page);
  await eventually(
    () => model.freePlaces === 1,
    60_000,
    () => 'the place is not given back',
  );
});
