/** The client of `banana-serve/client` against a server: as a function of `supervise()`, with jobs, and in a browser. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { build } from 'esbuild';
import { client, type ModelClient } from '../../client.js';
import { supervise, type ModelFunction } from '../../index.js';
import { ELSEWHERE, shareBrowser } from '../helpers/browser.js';
import { needs } from '../helpers/needs.js';
import { ROOT, fixture } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };
const TELLS = join(ROOT, 'test/fixtures/functions/tells.mjs');
const SCHEMAS = fixture('schemas.mjs');

type Model = ModelFunction | ModelClient;

/** The end of a call: its answer, or the code of its error and whether it has begun. */
async function endOf(answer: Promise<unknown>): Promise<unknown> {
  return answer.catch(({ code, begun, issues, status }: Record<string, unknown>) => [
    code,
    begun,
    issues,
    status,
  ]);
}

/** The end of a call that has begun when its time is over: longer times are tried until one is enough for that. */
async function endOfBegun(call: (ms: number) => Promise<unknown>): Promise<unknown> {
  for (let ms = 100; ; ms *= 2) {
    const end = (await endOf(call(ms))) as [code: string, begun: boolean];
    if (end[1]) return end;
  }
}

/** A program of two models, as functions of its own or of a server. */
async function program(tell: Model, schemas: Model): Promise<unknown[]> {
  const ends: unknown[] = [];
  ends.push(await endOf(tell({ act: 'echo', value: { list: [1, 'ä', null, true] } })));
  ends.push(await endOf(tell({ act: 'throw', message: 'no' })));
  const sleep = { act: 'sleep', ms: 1_000_000 };
  ends.push(await endOfBegun((timeoutMs) => tell(sleep, { timeoutMs })));
  ends.push(await endOfBegun((ms) => tell(sleep, { signal: AbortSignal.timeout(ms) })));
  for await (const item of (await tell({ act: 'count', to: 3 })) as AsyncIterable<unknown>) ends.push(item);
  for await (const item of (await tell({ act: 'count', to: Infinity })) as AsyncIterable<unknown>)
    if (item === 3) break;
  ends.push(await endOf(tell({ act: 'countAndFail', to: 0 })));
  ends.push(await endOf(schemas({ prompt: 'hi' })));
  ends.push(await endOf(schemas({ prompt: 5, steps: 'x' })));
  ends.push(await endOf(schemas({ prompt: 'hi', how: 'refuses' })));
  ends.push(await endOf(schemas({ prompt: 'hi', how: 'wrong output' })));
  return ends;
}

describe('a client', LIMIT, () => {
  const models = [`tells=${TELLS}`, `schemas=${SCHEMAS}`, `jobs=${fixture('jobs.mjs')}`];
  const args = [...models.flatMap((model) => ['--model', model]), '--cors-origin', '*'];
  const shared = shareHere(null, { args });
  const modelAt = (name: string): ModelClient => client(`${shared.server.url}/models/${name}`);

  test('a program of functions is one of clients, but for the lines that make them', async () => {
    const remote = await program(modelAt('tells'), modelAt('schemas'));
    await using tell = await supervise(TELLS, { prints: 'ignore' });
    await using schemas = await supervise(SCHEMAS, { prints: 'ignore' });
    assert.deepEqual(remote, await program(tell, schemas));
  });

  for (const route of ['/', '/later'])
    test(`a job of ${route} reports its progress and has its result, or its error`, async () => {
      const jobs = modelAt('jobs').route(route);
      const input = { progress: [[0.5, 'half']], until: 'go on', result: [1] };
      const job = await jobs.job(input);
      for await (const report of job.progress) {
        shared.cues.give('go on');
        assert.deepEqual(report, { fraction: 0.5, text: 'half' });
        break;
      }
      assert.deepEqual(await job.result(), [1]);
      const { result } = await jobs.job({ failing: 9 });
      assert.deepEqual(await endOf(result()), ['SERVE_INFERENCE_FAILED', true, [], 0]);
    });

  describe('in a browser', { skip: needs('chromium') }, () => {
    const browser = shareBrowser();

    test('a page of another origin calls a model, and gets errors and streams', async () => {
      const { outputFiles } = await build({
        entryPoints: [join(ROOT, 'client.ts')],
        bundle: true,
        write: false,
        format: 'iife',
        globalName: 'banana',
      });
      const url = `${shared.server.url}/models/`;
      // 404 is its icon; whether the server or the client ends the call of 100 ms is open.
      const expected = [/status of 422/, /status of 404/, /status of 504/];
      const other = `http://${ELSEWHERE}:${new URL(url).port}/livez`;
      await browser.visit(other, { expected }, async (page) => {
        const found = await page.evaluate(
          `${outputFiles[0]?.text}; (async () => {
            const [schemas, tell] = [banana.client('${url}schemas'), banana.client('${url}tells')];
            const ends = [(await schemas({ prompt: 'hi' })).text];
            ends.push(await schemas({ prompt: 5 }).catch(({ code, issues }) => [code, issues[0].path]));
            for await (const item of await tell({ act: 'count', to: 2 })) ends.push(item);
            ends.push(await tell({ act: 'sleep', ms: 60000 }, { timeoutMs: 100 }).catch(({ code }) => code));
            return ends;
          })()`,
        );
        assert.deepEqual(found, ['HI', ['SERVE_INPUT_INVALID', ['prompt']], 1, 2, 'SERVE_DEADLINE']);
      });
    });
  });
});
