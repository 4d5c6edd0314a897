/** The files of docs/deploy.md as their programs read them: a pod's environment, the unit of systemd, nginx in front. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { holdPort } from '../helpers/held-port.js';
import { needs } from '../helpers/needs.js';
import { run } from '../helpers/packed.js';
import { CLI, ROOT, call, eventually, fixture, startServer } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';
import { openSocket } from '../helpers/web-socket.js';

const LIMIT = { timeout: 240_000 };
const PAGE = readFileSync(`${ROOT}docs/deploy.md`, 'utf8');

function blockOf(language: string): string {
  return new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(PAGE)?.[1] ?? '';
}

const folder = mkdtempSync(join(tmpdir(), 'banana-deploy-'));
after(() => rmSync(folder, { recursive: true }));

test('systemd finds no mistake in the unit', { ...LIMIT, skip: needs('systemd-analyze') }, async () => {
  const unit = join(folder, 'my-model.service');
  writeFileSync(unit, blockOf('ini').replace('/usr/bin/node', '/bin/true')); // Node may lie elsewhere
  const { stdout, stderr } = await run('systemd-analyze', ['verify', unit]);
  assert.doesNotMatch(stdout + stderr, /my-model/);
});

test(
  'with the environment of the pod and a read-only root, calls and metrics are answered',
  { ...LIMIT, skip: needs('unshare') },
  async (t) => {
    const variables = [...blockOf('yaml').matchAll(/- \{ name: (BANANA_\w+), value: '(.*)' \}/g)];
    assert.equal(variables.length, 2);
    const env = Object.fromEntries(variables.map(([, name = '', value = '']) => [name, value]));
    const command = join(folder, 'with-read-only-root');
    // The working directory is still the checkout when /tmp hides it.
    const keepCheckout = `mkdir -p "${ROOT}" && mount --no-canonicalize --bind . "${ROOT}" && mount -o remount,ro,bind "${ROOT}" && cd "${ROOT}"`;
    const kept = ROOT.startsWith('/tmp/') ? `${keepCheckout} && ` : '';
    const steps = `mount -t tmpfs tmp /tmp && ${kept}mount -o remount,ro,bind / && exec "$@"`;
    writeFileSync(
      command,
      `#!/bin/sh\nexec unshare -rm sh -c '${steps}' sh "${process.execPath}" "${CLI}" "$@"\n`,
      { mode: 0o755 },
    );
    const server = await startServer(fixture('echoes.mjs'), {
      t,
      command,
      cwd: ROOT,
      key: 's3cret',
      env: { ...env, BANANA_METRICS_PORT: '0', BANANA_API_KEY: 's3cret' },
    });
    const headers = { 'x-banana-api-key': 's3cret' };
    assert.equal((await call(server.url, '[1]', headers)).text, '[1]');
    await server.untilPrinted(/metrics are on \S+\/metrics/);
    const [, port] = /metrics are on \S+:(\d+)\/metrics/.exec(server.stderr()) ?? [];
    assert.match(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text(), /banana_info/);
    assert.equal((await server.stop()).code, 0);
  },
);

describe('behind nginx', { ...LIMIT, skip: needs('nginx') }, () => {
  const args = ['--model', `refuses=${fixture('refuses-potassium.mjs')}`];
  const shared = shareHere(fixture('every-kind.mjs'), { args });
  let [url, stop]: [string, () => Promise<unknown>] = ['', async () => {}];

  before(async () => {
    const [port, pid] = [await holdPort(), join(folder, 'nginx.pid')];
    const config = join(folder, 'nginx.conf');
    const page = blockOf('nginx')
      .replace('127.0.0.1:8000', new URL(shared.server.url).host)
      .replace('listen 80', `listen 127.0.0.1:${port}`);
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
      .map((name) => `${name}_temp_path ${folder}/${name};`)
      .join(' ');
    writeFileSync(
      config,
      `daemon off; pid ${pid}; error_log stderr;\nevents {}\nhttp { access_log off; ${paths}\n${page}}\n`,
    );
    await run('nginx', ['-t', '-c', config]);
    const nginx = spawn('nginx', ['-c', config], { stdio: 'ignore' });
    stop = async () => nginx.kill('SIGQUIT') && once(nginx, 'exit');
    url = `http://127.0.0.1:${port}`;
    await eventually(
      async () => (await fetch(`${url}/readyz`).catch(() => null))?.status === 200,
      60_000,
      () => 'nginx does not answer',
    );
  }, LIMIT);
  after(() => stop());

  test('calls and streams are answered', async () => {
    assert.deepEqual((await call(url, '{"a":1}')).json(), { got: { a: 1 } });
    assert.equal((await call(`${url}/stream`, '{}')).text, 'ab');
  });

  test('the words of an app are hidden, although nginx is on this machine, and so is its client', async () => {
    const body = JSON.stringify({ how: 'throws an HttpError' });
    const { headers } = await call(`${url}/models/refuses/later`, body);
    const messageAt = async (server: string): Promise<string | undefined> => {
      const page = await fetch(`${server}${headers.get('location')}`);
      return ((await page.json()) as { error: { message: string } | null }).error?.message;
    };
    const isRefused = async (): Promise<boolean> => (await messageAt(shared.server.url)) !== undefined;
    await eventually(isRefused, 60_000, () => 'the job does not end');
    assert.notEqual(await messageAt(shared.server.url), '');
    assert.equal(await messageAt(url), '');
  });

  test('its own pages may call and open WebSockets, and others may not', async (t) => {
    const json = { 'content-type': 'application/json' };
    assert.equal((await call(url, '1', { ...json, origin: url })).status, 200);
    assert.equal((await call(url, '1', { ...json, origin: 'https://evil.example.com' })).status, 403);
    await openSocket(t, { url }, '/echo', { origin: url });
  });

  test('a WebSocket is opened', async (t) => {
    const { socket, heard } = await openSocket(t, { url }, '/echo');
    socket.send('hello');
    assert.deepEqual(await heard(1), ['hello']);
  });
});
