/** News of functions for their program, beside answers: log lines, metrics, and the end of calls that a close cuts off. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { supervise, type ModelFunction } from '../../index.js';
import { refusalOf, until } from '../helpers/functions.js';
import { ROOT } from '../helpers/server.js';

const TELLS = join(ROOT, 'test/fixtures/functions/tells.mjs');

type Tells = ModelFunction<{ inference: (input: Record<string, unknown>) => unknown }>;

/** A logger that notes the names of the models of its lines. */
function namesOfLines(): { readonly names: Set<unknown>; readonly log: never } {
  const names = new Set<unknown>();
  const note = (fields: { readonly model?: string } | string, text?: string): unknown => {
    const line = typeof fields === 'string' ? fields : text;
    return names.add((fields as { model?: string }).model ?? /^Model (\S+)/.exec(line ?? '')?.[1] ?? line);
  };
  return { names, log: { debug: note, info: note, warn: note, error: note } as never };
}

describe('a program that watches its functions', { timeout: 240_000 }, () => {
  test('gets the lines of each in its own logger', async () => {
    const [first, second] = [namesOfLines(), namesOfLines()];
    const one: Tells = await supervise(TELLS, { prints: 'ignore', log: first.log });
    const options = { prints: 'ignore', log: second.log, batchSize: 8, concurrency: 4 } as const;
    const two: Tells = await supervise(TELLS, options);
    await refusalOf(one({ act: 'kill' }));
    await refusalOf(two({ act: 'kill' }));
    await Promise.all([one.close(), two.close()]);
    assert.deepEqual([[...first.names], [...second.names]], [['tells'], ['tells-2']]);
  });

  test('reads the metrics of each', async () => {
    const one: Tells = await supervise(TELLS, { prints: 'ignore', queueSize: 1 });
    const other: Tells = await supervise(TELLS, { prints: 'ignore' });
    await one({ act: 'pid' });
    await one({ act: 'measure' });
    await refusalOf(one({ act: 'throw', message: 'no text' }));
    await refusalOf(one({ act: 'echo', value: () => {} }));
    await other({ act: 'pid' });
    const text = await one.metrics();
    const calls = text.split('\n').filter((line) => line.startsWith('banana_calls_total{'));
    assert.deepEqual(calls.sort(), [
      'banana_calls_total{model="tells",version="1",dialect="function",code="SERVE_BAD_BODY"} 1',
      'banana_calls_total{model="tells",version="1",dialect="function",code="SERVE_INFERENCE_FAILED"} 1',
      'banana_calls_total{model="tells",version="1",dialect="function",code="ok"} 2',
    ]);
    assert.match(text, /^banana_workers\{model="tells",version="1",state="idle"\} 1$/m);
    assert.match(text, /^seen_total\{model="tells",version="1"\} 1$/m);
    assert.doesNotMatch(text, /tells-2|banana_front/);
    await Promise.all([one.close(), other.close()]);
  });

  test('learns of each call that its close cut off whether it may have begun', async () => {
    let printed = '';
    const prints = (line: string): unknown => (printed = line);
    const tell: Tells = await supervise(TELLS, { prints, drainTimeout: 500 });
    const running = refusalOf(tell({ act: 'printAndBlock' }));
    await until(() => printed === 'blocks');
    const waiting = Array.from({ length: 20 }, () => refusalOf(tell({ act: 'pid' })));
    await tell.close();
    assert.deepEqual([(await running).code, (await running).begun], ['SERVE_WORKER_LOST', true]);
    for (const error of await Promise.all(waiting))
      assert.deepEqual([error.code, error.begun], ['SERVE_SHUTTING_DOWN', false], error.message);
  });
});
