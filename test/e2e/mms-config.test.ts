/** `config.properties` and a real server: which file is read, which source wins, what a mistake costs. */
import assert from 'node:assert/strict';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { request as requestHttp, type IncomingMessage } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, test, type TestContext } from 'node:test';
import { editedApp } from '../helpers/edited-app.js';
import { holdPort } from '../helpers/held-port.js';
import { managementOf } from '../helpers/managed-command.js';
import { RawConnection } from '../helpers/raw-http.js';
import { withEachRuntime, type Language } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { call, eventually, runCommand, type Server, type StartOptions } from '../helpers/server.js';

const RUNS = { timeout: 240_000, concurrency: 2 };

const SERVICE = `export const handle = (data) => data && data.map(({ body }) => ({ says: body }));`;

/** Free ports, as no start script would have them. */
const LISTENS = 'inference_address=http://127.0.0.1:0\nmanagement_address=http://127.0.0.1:0\n';

function folderOf(t: TestContext, files: Readonly<Record<string, string>>): string {
  return editedApp(t, { 'models/echo.mjs': SERVICE, ...files }).folder;
}

function startAsWritten(t: TestContext, args: readonly string[], options: StartOptions): Promise<Server> {
  return startHere(null, { ...options, t, args, isAddressGiven: true });
}

describe('a config.properties', RUNS, () => {
  test('as an operator of Multi Model Server has it, serves its models by its settings', async (t) => {
    const config = `${LISTENS}# mine
model_store=$$STORE$$
load_models=echo=echo.mjs
job_queue_size=7
default_response_timeout=60
vmargs=-Xmx4g
number_of_netty_threads=32
jobs_queue_size=7`;
    const cwd = folderOf(t, { 'conf/config.properties': config });
    const server = await startAsWritten(t, ['--mms-config', 'conf/config.properties'], {
      cwd,
      env: { STORE: './models' },
    });
    const { model, models } = await server.until(({ state }) => state === 'ready');
    assert.deepEqual([models.length, model.name, model.queue.maxCalls], [1, 'echo', 7]);
    assert.deepEqual((await call(`${server.url}/predictions/echo`, '5')).json(), { says: 5 });
    await server.untilPrinted(/the management API is on http:\/\/127\.0\.0\.1:\d+/);
    await server.untilPrinted('Model server started.');
    const warnings = server.stderr().match(/WARN: .*/g);
    assert.deepEqual(warnings, [
      'WARN: conf/config.properties: these keys have no effect here and are ignored: line 8: vmargs, line 9: number_of_netty_threads',
      'WARN: conf/config.properties line 10: jobs_queue_size: there is no such key; did you mean job_queue_size?',
    ]);
    await server.stop();
  });

  test('sets up single models by name and version, below the values of a registration', async (t) => {
    const config = `${LISTENS}model_store=models
load_models=echo.mjs
models={\\
  "echo": {"1": {"minWorkers": 2, "maxWorkers": 3, "batchSize": 4, "maxBatchDelay": 10, "responseTimeout": 60}},\\
  "later": {"1": {"maxWorkers": 2, "minWorkers": 1, "batchSize": 5}},\\
  "idle": {"1": {"minWorkers": 0}}\\
}`;
    const cwd = folderOf(t, { 'config.properties': config });
    const server = await startAsWritten(t, [], { cwd });
    await server.until(({ state }) => state === 'ready');
    const management = await managementOf(server);
    const facts = async (model: string): Promise<unknown> => {
      const { minWorkers, maxWorkers, batchSize, maxBatchDelay, responseTimeout, workers } = (
        await management.manage(`GET /models/${model}`)
      ).json<Record<string, unknown>>();
      return [minWorkers, maxWorkers, batchSize, maxBatchDelay, responseTimeout, (workers as []).length];
    };
    assert.deepEqual(await facts('echo'), [2, 3, 4, 10, 60, 2]);
    const register = 'POST /models?url=echo.mjs&model_name=later';
    assert.equal(await management.said(register), '200 Workers scaled');
    assert.deepEqual(await facts('later'), [1, 2, 5, 100, 120, 1]);
    assert.equal(await management.said('DELETE /models/later'), '200 Model "later" unregistered');
    assert.equal(
      await management.said(`${register}&batch_size=6&initial_workers=0`),
      '200 Model "later" registered',
    );
    assert.deepEqual(await facts('later'), [0, 0, 6, 100, 120, 0]);
    await server.stop();
  });

  test('beside an app counts where it is named, and the app answers as ever', async (t) => {
    const files = {
      'config.properties': 'management_address=http://127.0.0.1:0\nmodel_store=models',
      'app.mjs': 'export const inference = () => 1;',
    };
    const cwd = folderOf(t, files);
    const server = await startHere('./app.mjs', { t, cwd, args: ['--mms-config', 'config.properties'] });
    await server.until(({ state }) => state === 'ready');
    assert.equal((await call(server.url, '{}')).text, '1');
    await server.untilPrinted('the management API is on http');
    await server.stop();
  });
});

/** Services: one that shows of which kind its input is, and its environment; what makes its items raw; another. */
const SERVICES: Readonly<
  Record<Language, { extension: string; nosy: string; isRaw: string; answers: string }>
> = {
  TypeScript: {
    extension: '.mjs',
    nosy: `export const handle = (data) => data && data.map(({ body }) => ({
  kind: Buffer.isBuffer(body) ? 'bytes' : typeof body,
  env: Object.keys(process.env).filter((name) => /^(SECRET_|KEPT_|MMS_)/.test(name)),
}));
`,
    isRaw: 'export const config = { rawItems: true };',
    answers: SERVICE.replace('handle', 'answer'),
  },
  Python: {
    extension: '.py',
    nosy: `
import os
KINDS = {bytearray: "bytes", dict: "object"}
def handle(data, context):
    env = [name for name in os.environ if name.startswith(("SECRET_", "KEPT_", "MMS_"))]
    return data and [{"kind": KINDS[type(item["body"])], "env": env} for item in data]
`,
    isRaw: 'config = {"rawItems": True}',
    answers: 'def answer(data, context): return data and [{"bytes": len(item["body"])} for item in data]',
  },
};

withEachRuntime(({ language }) => {
  const { extension, nosy, isRaw, answers } = SERVICES[language];

  test('workers, their input and their environment follow config.properties', RUNS, async (t) => {
    const config = `${LISTENS}model_store=models
load_models=nosy${extension}
default_workers_per_model=2
default_service_handler=code:answer
number_of_gpu=0
decode_input_request=false
blacklist_env_vars=SECRET_.*`;
    const cwd = folderOf(t, {
      'config.properties': config,
      [`models/nosy${extension}`]: nosy,
      [`models/folder/code${extension}`]: answers,
    });
    const env = { SECRET_TOKEN: 'x', KEPT_TOKEN: 'x', KEPT_SECRET_: 'x', MMS_KEYSTORE_PASS: 'x' };
    const server = await startAsWritten(t, [], { cwd, env });
    const { model } = await server.until(
      ({ state, model: { workers } }) => state === 'ready' && workers.length === 2,
    );
    assert.deepEqual([model.minWorkers, model.maxWorkers], [2, 2]);
    const said = (await call(`${server.url}/predictions/nosy`, '{"a":')).json<{
      kind: string;
      env: string[];
    }>();
    assert.deepEqual([said.kind, said.env.sort()], ['bytes', ['KEPT_SECRET_', 'KEPT_TOKEN']]);
    const management = /the management API is on (\S+)/.exec(server.stderr())?.[1];
    const registered = await call(
      `${management}/models?url=folder&synchronous=true`,
      null,
      {},
      { method: 'POST' },
    );
    assert.deepEqual([registered.status, registered.json()], [200, { status: 'Workers scaled' }]);
    const { models } = await server.status();
    assert.equal(models.find(({ name }) => name === 'folder')?.workers.length, 2);
    assert.deepEqual((await call(`${server.url}/predictions/folder`, '5')).status, 200);
    await server.stop();
  });

  test("a model's own config may ask for raw items, and its neighbour's stay decoded", RUNS, async (t) => {
    const cwd = folderOf(t, {
      'config.properties': `${LISTENS}model_store=models\nload_models=raw${extension},decoded${extension}`,
      [`models/raw${extension}`]: nosy + isRaw,
      [`models/decoded${extension}`]: nosy,
    });
    const server = await startAsWritten(t, [], { cwd });
    await server.until(({ state }) => state === 'ready');
    const answers = ['raw', 'decoded'].map((name) => call(`${server.url}/predictions/${name}`, '{"a":1}'));
    assert.deepEqual(
      (await Promise.all(answers)).map((answer) => answer.json<{ kind: string }>().kind),
      ['bytes', 'object'],
    );
    await server.stop();
  });
});

const SHOWS_NAMES = `export const handle = (data) => data && data.map(() =>
  Object.keys(process.env).filter((name) => /(?:^|_)MINE(?:_|$)/i.test(name)).sort());`;
const OF_THE_OPERATOR = {
  MINE_API_KEY: 'x',
  AWS_SECRET_MINE: 'x',
  mine_password: 'x',
  MINE_HOME: 'x',
  MINE: 'x',
};

const WITHHELD =
  /INFO: workers do not get these variables, whose names look like secrets: (?:\S+, )*AWS_SECRET_MINE, (?:\S+, )*MINE_API_KEY, (?:\S+, )*mine_password(?:, \S+)*; set --withhold-env to a pattern to withhold others, or to '' \(blacklist_env_vars=\) to withhold none\n/;

test(
  'workers of a store do not get variables whose names look like secrets, and the start logs their names',
  RUNS,
  async (t) => {
    const config = `${LISTENS}model_store=models\nload_models=names.mjs`;
    const cwd = folderOf(t, { 'config.properties': config, 'models/names.mjs': SHOWS_NAMES });
    const server = await startAsWritten(t, [], { cwd, env: OF_THE_OPERATOR });
    await server.until(({ state }) => state === 'ready');
    assert.deepEqual((await call(`${server.url}/predictions/names`, '1')).json(), ['MINE', 'MINE_HOME']);
    await server.stop();
    assert.match(server.stderr(), WITHHELD);
  },
);

test('a port of a config.properties that is in use is reported with its line', RUNS, async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const cwd = folderOf(t, { 'config.properties': `${LISTENS}management_address=http://127.0.0.1:${port}` });
  const command = runCommand([], { t, cwd });
  assert.deepEqual(await command.ended, { code: 4, signal: null });
  const [said] = command.stderr().trimEnd().split('\n').slice(-1);
  assert.equal(
    said,
    `banana-serve: port ${port} of 127.0.0.1 (config.properties line 3: management_address) is in use by another program. Choose another with --management-port, or --management-port 0 for a free one.`,
  );
});

test('each address in config.properties may be a unix socket, and answers there', RUNS, async (t) => {
  const config = `inference_address=unix:$$FOLDER$$/i.sock
management_address=unix:$$FOLDER$$/m.sock
metrics_address=unix:$$FOLDER$$/p.sock
model_store=models
load_models=ALL`;
  const cwd = folderOf(t, { 'config.properties': config });
  const command = runCommand([], { t, cwd, env: { FOLDER: cwd } });
  const saysWhere = `the management API is on unix:${cwd}/m.sock`;
  const ask = (socket: string, asked: string, body = ''): Promise<string> =>
    askSocket(join(cwd, socket), asked, body);
  await eventually(
    () => /Model echo loaded\./.test(command.stderr()),
    60_000,
    () => command.stderr() + command.stdout(),
  );
  assert.match(await ask('i.sock', 'POST /predictions/echo', '5'), /^200 \{\s*"says": 5\s*\}$/);
  assert.match(await ask('m.sock', 'GET /models/echo'), /^200 .*"modelName":\s*"echo"/s);
  assert.match(await ask('p.sock', 'GET /metrics'), /^200 .*banana_calls_total\{model="echo"/s);
  assert.match(await ask('i.sock', 'POST /models?url=echo.mjs&model_name=other'), /^404 /);
  assert.match(await ask('p.sock', 'GET /models'), /^404 /);
  assert.ok(command.stderr().includes(saysWhere), command.stderr());
  const modes = ['m.sock', 'p.sock'].map((name) => statSync(join(cwd, name)).mode & 0o777);
  assert.deepEqual(modes, [0o600, 0o600]);
  command.process.kill('SIGINT');
  assert.equal((await command.ended).code, 0);
});

/** Status and body of what is answered on a unix socket. `asked`: method and path. */
async function askSocket(socketPath: string, asked: string, body: string): Promise<string> {
  const [method, path] = asked.split(' ');
  const headers = { 'content-type': 'application/json' };
  const request = requestHttp({ socketPath, method, path, headers, agent: false });
  request.end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return `${response.statusCode} ${await text(response)}`;
}

test('localhost beside 127.0.0.1 on one port is one address, reported with its line', RUNS, async (t) => {
  const port = await holdPort();
  const config = `inference_address=http://127.0.0.1:${port}\nmanagement_address=http://localhost:${port}`;
  const cwd = folderOf(t, { 'config.properties': config });
  const { address } = await lookup('localhost');
  if (address !== '127.0.0.1') {
    t.skip(`localhost is ${address} on this machine, which is another address`);
    return;
  }
  const command = runCommand([], { t, cwd });
  assert.deepEqual(await command.ended, { code: 4, signal: null });
  assert.match(
    command.stderr(),
    new RegExp(`port ${port} of 127.0.0.1 \\(config.properties line 2: management_address\\) is in use`),
  );
});

test(
  "a web page in the operator's browser gets nowhere with a management API of the config.properties that MMS_CONFIG_FILE names",
  RUNS,
  async (t) => {
    const config = `${LISTENS}model_store=models\nload_models=ALL\ncors_allowed_origin=https://ours.example.com`;
    const cwd = folderOf(t, { 'other.properties': config });
    const server = await startAsWritten(t, [], { cwd, env: { MMS_CONFIG_FILE: 'other.properties' } });
    await server.until(({ model }) => model.name === 'echo' && model.state === 'ready');
    await server.untilPrinted('the management API is on');
    const management = /the management API is on (\S+)/.exec(server.stderr())?.[1] as string;
    const { host, port } = new URL(management);
    const asked = async (headers: string): Promise<number> => {
      const head = `POST /models?url=echo.mjs&model_name=m HTTP/1.1\r\n${headers}Content-Length: 0\r\n\r\n`;
      return (await RawConnection.ask({ url: management }, head)).status;
    };
    for (const [headers, status] of [
      [`Host: ${host}\r\nOrigin: https://evil.example.com\r\n`, 403],
      [`Host: ${host}\r\nOrigin: null\r\n`, 403],
      [`Host: evil.example.com:${port}\r\n`, 403],
      [`Host: localhost:${port}\r\nOrigin: https://ours.example.com\r\n`, 200],
      [`Host: ${host}\r\n`, 409],
    ] as const)
      assert.equal(await asked(headers), status, headers);
    await server.stop();
  },
);

test(
  'an app of yours has all variables and its own files: banana.json goes before its config, config.properties is not read',
  RUNS,
  async (t) => {
    const names = `Object.keys(process.env).filter((name) => /(?:^|_)MINE(?:_|$)/i.test(name)).sort()`;
    const cwd = folderOf(t, {
      'banana.json': '{ "queueSize": 5 }',
      'config.properties': 'management_address=nonsense',
      'app.mjs': `export const config = { queueSize: 6 }; export const inference = () => ${names};`,
    });
    const server = await startHere(null, { t, cwd, env: OF_THE_OPERATOR });
    const { model } = await server.until(({ state }) => state === 'ready');
    assert.equal(model.queue.maxCalls, 5);
    assert.deepEqual((await call(server.url, '{}')).json(), Object.keys(OF_THE_OPERATOR).sort());
    await server.untilPrinted('config.properties is not read, because the folder has an app to serve');
    await server.stop();
    assert.ok(!server.stderr().includes('management'), server.stderr());
    assert.doesNotMatch(server.stderr(), /names look like secrets/);
  },
);
