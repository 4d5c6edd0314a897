/** The calls that the page at `/` writes as code: each program gets the same answer as the page. */
import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import {
  curlOf,
  fetchOf,
  KEY_PLACEHOLDER,
  pythonOf,
  type CallRequest,
} from '../../supervisor/page/try/snippets.js';
import { needs } from '../helpers/needs.js';
import { run } from '../helpers/packed.js';
import { ROOT, fixture } from '../helpers/server.js';
import { shareHere } from '../helpers/shared-server.js';

const LIMIT = { timeout: 240_000 };
const KEY = 'the-key';

const PROGRAMS = {
  curl: { write: curlOf, command: ['sh', '-c'], missing: needs('curl') },
  fetch: { write: fetchOf, command: [process.execPath, '--input-type=module', '-e'], missing: false },
  Python: { write: pythonOf, command: ['/usr/bin/python3', '-c'], missing: needs('python3-requests') },
} as const;

const JSON_TYPE = [['Content-Type', 'application/json']] as const;
const PNG = { name: "it's a 3; or not.png", type: 'image/png' };

interface Row {
  readonly path: string;
  readonly call: Pick<CallRequest, 'headers' | 'body'>;
  /** In the answer, as the program prints it. */
  readonly expected: string;
}

const ROWS: Readonly<Record<string, Row>> = {
  JSON: {
    path: '/models/kinds/',
    call: {
      headers: JSON_TYPE,
      body: { kind: 'text', text: `{\n  "it's": [true, null, "\\"\\u0041\\\\é", 1.5]\n}` },
    },
    expected: String.raw`"got":{"it's":[true,null,"\"A\\\u00e9",1.5]}`,
  },
  'a file': {
    path: '/',
    call: { headers: [['Content-Type', 'image/png']], body: { kind: 'file', ...PNG } },
    expected: '"label":3',
  },
  'a form': {
    path: '/',
    call: { headers: [], body: { kind: 'form', field: 'image', ...PNG } },
    expected: '"label":3',
  },
};

describe('a call as code', () => {
  const args = ['--model', `kinds=${fixture('kinds-of-answers.mjs')}`, '--api-key', KEY];
  const shared = shareHere(`${ROOT}examples/digits/app.ts`, { args });
  const folder = mkdtempSync(join(tmpdir(), 'banana-code-'));
  copyFileSync(`${ROOT}examples/digits/png/3-row8.png`, join(folder, PNG.name));
  after(() => rmSync(folder, { recursive: true, force: true }));

  for (const [program, { write, command, missing }] of Object.entries(PROGRAMS))
    for (const [name, { path, call, expected }] of Object.entries(ROWS))
      test(`${program} sends ${name}`, { ...LIMIT, skip: missing }, async () => {
        const request = { ...call, url: shared.server.url + path, needsKey: true, isStream: false };
        const [file, ...flags] = command;
        const code = write(request).replace(KEY_PLACEHOLDER, KEY);
        const { stdout } = await run(file, [...flags, code], { cwd: folder });
        assert.ok(stdout.includes(expected), `${code}\n\n${stdout}`);
      });
});
