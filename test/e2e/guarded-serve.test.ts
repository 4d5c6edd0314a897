/** Apps that start themselves behind a guard, which is true in the process that was started and false in a worker. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { editedApp } from '../helpers/edited-app.js';
import { ROOT, call, eventually, runCommand } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };
const LISTEN = "{ host: '127.0.0.1', port: 0 }";

const MAKES = `const app = new Potassium('guarded').init(() => ({ by: 'init' }));
app.handler('/', (context, request) => new Response({ json: { by: context.by, got: request.json } }));
`;
const entry = (names: string, extension: string): string =>
  JSON.stringify(`${ROOT}dist/${names === 'run' ? 'index' : 'potassium'}.${extension}`);
const imports = (names: string, extension = 'js'): string =>
  `import { ${names} } from ${entry(names, extension)};\n`;
const requires = (names: string): string => `const { ${names} } = require(${entry(names, 'cjs')});\n`;
const IS_MAIN = 'process.argv[1] === import.meta.filename';

const STARTED: readonly (readonly [what: string, file: string, text: string, flags: readonly string[]])[] = [
  [
    'an ES module',
    'app.mjs',
    `${imports('Potassium, Response')}${MAKES}if (${IS_MAIN}) await app.serve(${LISTEN});\n`,
    [],
  ],
  [
    'CommonJS',
    'app.cjs',
    `${requires('Potassium, Response')}${MAKES}if (require.main === module) void app.serve(${LISTEN});\n`,
    [],
  ],
  [
    'TypeScript, with tsx',
    'app.mts',
    `${imports('Potassium, Response')}${MAKES}if (${IS_MAIN}) await app.serve(${LISTEN});\n`,
    ['--import', 'tsx'],
  ],
  [
    'TypeScript as CommonJS, with tsx',
    'app.ts',
    `${imports('Potassium, Response', 'cjs')}${MAKES}if (require.main === module) void app.serve(${LISTEN});\n`,
    ['--import', 'tsx'],
  ],
  [
    'functions that are exported as well',
    'app.mjs',
    `${imports('run')}export const inference = (got) => ({ by: 'init', got });
if (${IS_MAIN}) await run({ inference, host: '127.0.0.1', port: 0 });\n`,
    [],
  ],
];

for (const [what, file, text, flags] of STARTED) {
  test(`an app that serves itself behind a guard is served: ${what}`, LIMIT, async (t) => {
    const app = editedApp(t, { [file]: text });
    const started = runCommand([...flags, app.path(file)], { t, command: process.execPath });
    const place = / on (http:\/\/\S+)\n/;
    await eventually(
      () => place.test(started.stderr()),
      60_000,
      () => started.stderr(),
    );
    const [, url = ''] = place.exec(started.stderr()) ?? [];
    const answer = await call(url, '{"a":1}');
    assert.deepEqual(answer.json(), { by: 'init', got: { a: 1 } }, started.stderr());
    started.process.kill('SIGINT');
    assert.deepEqual(await started.ended, { code: 0, signal: null });
  });
}

const REFUSED: readonly (readonly [what: string, text: string, args: readonly string[], says: RegExp])[] = [
  [
    'a Potassium that is not exported, under banana-serve',
    `${imports('Potassium, Response')}${MAKES}if (${IS_MAIN}) await app.serve(${LISTEN});\n`,
    [`${ROOT}dist/front/cli.js`, '--host', '127.0.0.1', '--port', '0'],
    /app\.mjs:2: this file makes a Potassium app and does not export it as its default\. Add `export default app`/,
  ],
  [
    'functions that are served behind a guard and not exported',
    `${imports('run')}const inference = () => 1;
if (${IS_MAIN}) await run({ inference, host: '127.0.0.1', port: 0 });\n`,
    [],
    /app\.mjs:3: a worker that imports this file does not reach this run\(\)\..*also export the functions/,
  ],
];

for (const [what, text, args, says] of REFUSED) {
  test(`${what}: the error names what to export`, LIMIT, async (t) => {
    const app = editedApp(t, { 'app.mjs': text });
    const started = runCommand([...args, app.path('app.mjs')], { t, command: process.execPath });
    assert.equal((await started.ended).code, 3);
    assert.match(started.stderr(), says);
  });
}
