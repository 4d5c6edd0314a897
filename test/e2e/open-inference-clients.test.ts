/**
 * NVIDIA's tritonclient: the bytes that its examples sent, as a proxy has recorded them while they passed, and the client
 * itself where it is installed.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, test } from 'node:test';
import { holdPort } from '../helpers/held-port.js';
import { needs } from '../helpers/needs.js';
import { withEachRuntime } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { ROOT } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';
import { ask } from '../helpers/v2.js';

interface Recorded {
  /** The example that sent it. */
  readonly from: string;
  readonly method: string;
  readonly path: string;
  /** Without Host and Content-Length. */
  readonly headers: Record<string, string>;
  /** In base64. */
  readonly body: string;
  readonly answer: {
    readonly status: number;
    readonly error?: string;
    readonly outputs?: Readonly<Record<string, RecordedTensor>>;
  };
}

/** `base64`: the output came as bytes. */
interface RecordedTensor {
  readonly shape: readonly number[];
  readonly datatype: string;
  readonly data?: readonly unknown[];
  readonly base64?: string;
}

const RECORDED = JSON.parse(
  readFileSync(`${ROOT}test/fixtures/open-inference/tritonclient.json`, 'utf8'),
) as readonly Recorded[];

const KEY = 'k3y';
const MODELS = ['simple', 'simple_string', 'simple_identity'];

/** Runs the client of the fixtures; resolves with the steps that have passed, and what it printed if one has not. */
async function runClient(url: string, model: string, way: 'called' | 'loaded'): Promise<string> {
  const program = `${ROOT}test/fixtures/clients/triton_client.py`;
  const child = spawn('/usr/bin/python3', ['-B', program, new URL(url).host, KEY, model, way], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (printed += text));
  await once(child, 'close');
  return printed;
}

withEachRuntime(({ app }) => {
  describe('what the examples of tritonclient send is answered as they expect', { timeout: 240_000 }, () => {
    const args = MODELS.flatMap((name) => ['--model', `${name}=${app('tensors')}`]);
    const shared = shareHere(null, { args: [...args, '--compress'] });

    for (const [i, { from, method, path, headers, body, answer }] of RECORDED.entries())
      test(`${i}, of ${from}: ${method} ${path}`, async () => {
        const sent =
          body === '' ? { method, headers } : { method, headers, body: Buffer.from(body, 'base64') };
        const { status, error, outputs } = await ask(shared.server.url, path, sent);
        assert.deepEqual([status, error], [answer.status, answer.error]);
        const expected = Object.entries(answer.outputs ?? {}).map(([name, { base64, data, ...tensor }]) => [
          name,
          { ...tensor, data: base64 === undefined ? data : Buffer.from(base64, 'base64') },
        ]);
        assert.deepEqual(outputs, Object.fromEntries(expected));
      });
  });

  const skip = needs('tritonclient');
  test(
    'tritonclient calls a model, with every pair of compressions',
    { skip, timeout: 240_000 },
    async (t) => {
      const args = ['--name', 'simple', '--compress', '--api-key', KEY];
      const server = await startHere(app('tensors'), { t, args });
      await server.until(({ state }) => state === 'ready');
      const steps = ['pages', 'calls', 'compressions', 'several_at_once', 'texts'];
      assert.equal(
        await runClient(server.url, 'simple', 'called'),
        steps.map((step) => `passed: ${step}\n`).join(''),
      );
      await server.stop();
    },
  );

  test(
    'tritonclient loads, calls and unloads a model at one address',
    { skip, timeout: 240_000 },
    async (t) => {
      const port = String(await holdPort());
      const path = app('tensors');
      const store = ['--model-store', dirname(path), '--models', 'none'];
      const address = ['--host', '127.0.0.1', '--port', port, '--management-port', port, '--api-key', KEY];
      const server = await startHere(null, {
        t,
        args: [...store, ...address],
        isAddressGiven: true,
      });
      assert.equal(await runClient(server.url, 'tensors', 'loaded'), 'passed: loads\n');
      await server.stop();
    },
  );
});
