/** The command line and its other sources of options, with real processes: values that hold, values that are refused, and the messages. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { EXIT_CODES } from '../../supervisor/command/server-process.js';
import { OPTIONS, OPTION_GROUPS, OPTION_NAMES } from '../../supervisor/options/table.js';
import { ask } from '../helpers/ask.js';
import {
  ROOT,
  fixture,
  runCommand,
  startServer,
  type RunningCommand,
  type Server,
  type StartOptions,
} from '../helpers/server.js';

const RUNS = { timeout: 240_000, concurrency: 2 };

function folder(t: TestContext, files: Readonly<Record<string, string>>): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'banana-command-')));
  t.after(() => rmSync(path, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  return path;
}

async function run(
  t: TestContext,
  args: readonly string[],
  options: StartOptions = {},
): Promise<{ code: number | null; out: string; err: string }> {
  const command = runCommand(args, { t, ...options });
  const { code } = await command.ended;
  return { code, out: command.stdout(), err: command.stderr() };
}

describe('the command', RUNS, () => {
  test('--help lists the options of the table in README.md, and names --help-all for the rest', async (t) => {
    const { code, out, err } = await run(t, ['--help']);
    assert.deepEqual([code, err], [0, '']);
    const table = /^## Options\n(.*?)^## /ms.exec(readFileSync(`${ROOT}README.md`, 'utf8'))?.[1] ?? '';
    const rows = table.split('\n').flatMap((row) => /^\| (`--[^|]*)\|/.exec(row)?.[1] ?? []);
    const inReadme = rows.flatMap((row) => row.match(/--[\w-]+/g) ?? []);
    const others = ['--version', '--help-all', '--python-path', '--help'];
    const listed = [...out.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map(([, flag = '']) => flag);
    assert.deepEqual(listed.sort(), [...inReadme, '--watch', ...others].sort());
    assert.match(out, /banana-serve --help-all prints the other options/);
  });

  test('--help-all lists every option with its default, in groups, and the exit codes; its examples are commands that it takes', async (t) => {
    const { code, out, err } = await run(t, ['--help-all']);
    assert.deepEqual([code, err], [0, '']);
    const text = out.replace(/\s+/g, ' ');
    for (const name of OPTION_NAMES) {
      const { flag, help, defaultText } = OPTIONS[name];
      assert.ok(text.includes(`${flag} `), flag);
      assert.ok(text.includes(`${help} [${defaultText}]`), name);
    }
    for (const { code: exit, meaning } of Object.values(EXIT_CODES))
      assert.ok(text.includes(`${exit} ${meaning}`), meaning);
    assert.match(text, /BANANA_RUN_TIMEOUT=30s/);
    const headings = [...out.matchAll(/^(\w+):$/gm)].map(([, heading]) => heading);
    assert.deepEqual(headings, [
      'Arguments',
      'Options',
      ...OPTION_GROUPS.map(([group]) => group),
      'Commands',
      'Examples',
    ]);
    for (const [group, names] of OPTION_GROUPS) {
      const section = out.split(`\n${group}:\n`)[1]?.split('\n\n')[0] ?? '';
      const flags = [...section.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map(([, flag]) => flag);
      const named = group === 'Models' ? ['--model'] : []; // no option of the table: it may be repeated
      assert.deepEqual(flags, [...named, ...names.map((name) => OPTIONS[name].flag)]);
    }
    const examples = [...out.matchAll(/^ {2}banana-serve (\S.*?) {2,}/gm)].map(([, line = '']) =>
      line.split(' '),
    );
    const [create, ...serves] = examples;
    assert.deepEqual([create, serves.length], [['new', 'my-model'], 4]);
    const several = serves.pop() ?? [];
    const { err: said } = await run(t, several);
    assert.equal(said, `banana-serve: ${several.slice(0, 2).join(' ')}: ./a.ts: no such file.\n`);
    // With an app that is not there, a bad option would be reported first.
    for (const [, ...args] of serves) {
      const { err } = await run(t, ['./none.ts', ...args]);
      assert.equal(err, 'banana-serve: ./none.ts: no such file.\n');
    }
  });

  test('--version prints the version of the package and nothing else', async (t) => {
    const { version } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { version: string };
    assert.deepEqual(await run(t, ['--version']), { code: 0, out: `${version}\n`, err: '' });
  });

  const app = 'app.mjs';
  const TEXT = 'console.log("started"); export const inference = () => 1;';
  // Refused by the parser of the command line, and one of those that the table refuses.
  const REFUSED: readonly (readonly [args: readonly string[], says: string])[] = [
    [['--prt', '80'], "unknown option '--prt'\n(Did you mean --port?)"],
    [['--port'], "option '-p, --port <port>' argument missing"],
    [
      ['-p', '65536'],
      '--port: "65536" is not allowed; give a port from 0 to 65535, or the path of a unix socket.',
    ],
    [
      ['--models', 'a.py', 'b.py'],
      '--models a.py b.py: separate models by commas: --models a.py,b.py. An app goes before the flags.',
    ],
    [['--watch=yes'], '--watch is a switch and takes no value: write --watch, or leave it out.'],
    [['other.mjs'], 'too many arguments. Expected 1 argument but got 2.'],
  ];

  for (const [args, says] of REFUSED) {
    test(`${args.join(' ')} is refused before anything starts: option, value, what is allowed`, async (t) => {
      const cwd = folder(t, { [app]: TEXT });
      assert.deepEqual(await run(t, [app, ...args], { cwd }), {
        code: 2,
        out: '',
        err: `banana-serve: ${says}\n`,
      });
    });
  }

  test('without an app, given or found, the error explains what to do', async (t) => {
    const cwd = folder(t, {});
    const { code, err } = await run(t, [], { cwd });
    assert.equal(code, 2);
    assert.equal(
      err,
      `banana-serve: no app was given, and there is no app.ts, app.mts, app.cts, app.js, app.mjs, app.cjs, app.py in ${cwd}. Run: banana-serve ./app.ts\n`,
    );
  });
});

describe('the environment and the config file, by the command', RUNS, () => {
  test('a bad variable is refused by the command, with exit code 2', async (t) => {
    const cwd = folder(t, { 'app.mjs': 'export const inference = () => 1;' });
    assert.deepEqual(await run(t, ['app.mjs'], { cwd, env: { BANANA_WORKERS: 'many' } }), {
      code: 2,
      out: '',
      err: 'banana-serve: BANANA_WORKERS: "many" is not allowed; give a whole number from 1 to 1024.\n',
    });
  });

  test('the config file may name the app and set any option', async (t) => {
    const config = { app: './model.mjs', port: 0, host: '127.0.0.1', workers: 2, queueSize: 3 };
    const cwd = folder(t, {
      'model.mjs': 'export const inference = () => "found";',
      'banana.json': JSON.stringify(config),
    });
    const command = runCommand([], { t, cwd });
    const url = await listening(command);
    assert.equal(await (await fetch(url, { method: 'POST' })).text(), '"found"');
    const { model } = (await (await fetch(`${url}/status`)).json()) as {
      model: { workers: unknown[]; queue: { maxCalls: number } };
    };
    assert.deepEqual([model.workers.length, model.queue.maxCalls], [2, 3]);
    command.process.kill('SIGINT');
    assert.equal((await command.ended).code, 0);
  });

  test('PORT is honoured, what Kubernetes injects is ignored with a warning, a mistyped variable is warned about', async (t) => {
    const env = {
      PORT: '0',
      BANANA_PORT: 'tcp://10.0.0.1:8000',
      BANANA_SERVICE_PORT: '8000',
      BANANA_WORKRES: '2',
    };
    const command = runCommand([fixture('echoes.mjs'), '--host', '127.0.0.1'], { t, env });
    const url = await listening(command);
    assert.equal((await fetch(`${url}/livez`)).status, 200);
    command.process.kill('SIGINT');
    assert.equal((await command.ended).code, 0);
    const warnings = command
      .stderr()
      .split('\n')
      .filter((line) => line.includes('WARN'));
    assert.equal(warnings.length, 2, command.stderr());
    assert.match(
      warnings[0] ?? '',
      /BANANA_PORT=tcp:\/\/10\.0\.0\.1:8000 looks like a variable that Kubernetes sets, and is ignored/,
    );
    assert.match(
      warnings[1] ?? '',
      /BANANA_WORKRES is not an option of banana-serve; did you mean BANANA_WORKERS\?/,
    );
  });
});

/** The URL that the start-up line names. */
async function listening(command: RunningCommand): Promise<string> {
  const [, url = ''] = await said(command, / on (http:\/\/\S+)\n/);
  return url;
}

/** Resolves once stderr matches; rejects if the command ends before. */
async function said(command: RunningCommand, text: RegExp): Promise<RegExpExecArray> {
  for (;;) {
    const match = text.exec(command.stderr());
    if (match !== null) return match;
    const more = new Promise((resolve) => command.process.stderr?.once('data', resolve));
    const end = command.ended.then(({ code }) => assert.fail(`it ended with ${code}: ${command.stderr()}`));
    await Promise.race([more, end]);
  }
}

describe('listening', RUNS, () => {
  test('two servers with --port 0 get two ports; a port in use is exit code 4 and reads well', async (t) => {
    const servers = await Promise.all(
      [
        ['--workers', '2'],
        ['--log-format', 'json'],
      ].map((args) => startServer(fixture('echoes.mjs'), { t, args })),
    );
    const [text, json] = servers as [Server, Server];
    const port = new URL(text.url).port;
    assert.notEqual(port, new URL(json.url).port);
    const { code, out, err } = await run(t, [
      fixture('prints-when-imported.mjs'),
      '--host',
      '127.0.0.1',
      '--port',
      port,
    ]);
    assert.equal(
      err,
      `banana-serve: port ${port} of 127.0.0.1 is in use by another program. Choose another with --port, or --port 0 for a free one.\n`,
    );
    assert.deepEqual([code, out], [4, ''], 'no worker was started');
    await text.untilPrinted('is ready');
    await ask(json, {});
    for (const server of servers) assert.equal((await server.stop()).code, 0);
    assertTextOutput(text);
    assertJsonOutput(json);
  });

  for (const [args, says] of [
    [
      ['--host', '203.0.113.7', '--port', '8000'],
      /^banana-serve: cannot listen on port 8000 of 203\.0\.113\.7: .*EADDRNOTAVAIL.*Check --host and --port\.\n$/,
    ],
    [
      ['--host', 'nohost.invalid'],
      /^banana-serve: cannot listen on host nohost\.invalid: .*Check --host and --port\.\n$/,
    ],
    [
      ['--port', '/nowhere/at/all.sock'],
      /^banana-serve: cannot listen on \/nowhere\/at\/all\.sock: .*Check --host and --port\.\n$/,
    ],
  ] as const) {
    test(`${args.join(' ')}: exit code 4 and a reason`, async (t) => {
      const { code, err } = await run(t, [fixture('echoes.mjs'), ...args]);
      assert.match(err, says);
      assert.equal(code, 4);
    });
  }

  test('a unix socket: served, a second server refused, a stale file replaced, the file gone at the end', async (t) => {
    const cwd = folder(t, {});
    const socket = join(cwd, 'serve.sock');
    const args = [fixture('echoes.mjs'), '--port', socket];
    const first = runCommand(args, { t });
    await said(first, /is ready/);
    assert.match(first.stderr(), new RegExp(` on unix:${socket}\n`));
    assert.equal(await postOverSocket(socket, '{"a":1}'), '{"a":1}');

    const second = await run(t, args);
    assert.deepEqual(
      [second.code, second.err],
      [
        4,
        `banana-serve: ${socket} is in use by another program. Choose another with --port, or --port 0 for a free one.\n`,
      ],
    );

    first.process.kill('SIGKILL');
    await first.ended;
    const third = runCommand(args, { t });
    await said(third, /is ready/);
    assert.equal(
      await postOverSocket(socket, '2'),
      '2',
      'the file that the killed server left is no obstacle',
    );
    third.process.kill('SIGINT');
    assert.equal((await third.ended).code, 0);
    assert.throws(() => readFileSync(socket), { code: 'ENOENT' });
  });
});

function postOverSocket(socketPath: string, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, method: 'POST', path: '/' }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () => resolve(text));
    });
    call.on('error', reject).end(body);
  });
}

/** The start names version, app, workers and address; all of it is on stderr. */
function assertTextOutput(server: Server): void {
  const { version } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { version: string };
  const [first = ''] = server.stderr().split('\n');
  assert.ok(
    first.includes(
      `banana-serve ${version} serves test/fixtures/apps/echoes.mjs with 2 workers on the CPU (`,
    ),
    first,
  );
  assert.ok(first.endsWith(` on ${server.url}`), first);
  assert.match(server.stderr(), /worker \d is ready \(init \d+ ms\)/);
  assert.equal(server.stdout(), '', "stdout is the app's");
  assert.match(server.stderr(), /draining \(at most 25 s\)[^]*stopped; every call was answered\n$/);
}

function assertJsonOutput(server: Server): void {
  const lines = server
    .stderr()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.ok(lines.length >= 4);
  for (const { time, level, msg } of lines)
    assert.ok(
      Number.isFinite(Date.parse(String(time))) && typeof level === 'string' && typeof msg === 'string',
    );
}

test('--log-level silent logs nothing', RUNS, async (t) => {
  const silent = await startSilently(t);
  silent.process.kill('SIGINT');
  assert.equal((await silent.ended).code, 0);
  assert.equal(silent.stderr(), '');
});

/** A silent server does not print its port: it gets a unix socket, which answers once it listens. */
async function startSilently(t: TestContext): Promise<RunningCommand> {
  const socket = join(folder(t, {}), 'silent.sock');
  const command = runCommand([fixture('echoes.mjs'), '--port', socket, '--log-level', 'silent'], { t });
  for (;;) {
    const text = await postOverSocket(socket, '1').catch(() => null);
    if (text === '1') return command;
  }
}
