/**
 * The supervisor's knowledge of Python stands in `runtimes/`. The few other lines that name it are listed here with the
 * reason; a new one belongs behind the runtime.
 */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ROOT } from '../helpers/server.js';

const SUPERVISOR = join(ROOT, 'supervisor');

/** The language, its files, and what its tools leave or look for. */
const PYTHON = /python|\bpip\b|\.pyc?\b|__pycache__|__init__|site-packages|\bvenv\b|VIRTUAL_ENV|CONDA/i;

const ALLOWED: Readonly<Record<string, string>> = {
  'cli.ts': 'the flags --python and --python-path, `new --python`, and app.py among the default names',
  'command/help.ts': 'the example `new --python`',
  'http/call/task-call.ts': 'the line that an app needs, in either language',
  'observe/log-text.ts': 'where a traceback has its last line and its chain',
  'options/read-objects.ts': "an example of a program of the user's own",
  'options/table.ts': 'the option --python',
  'options/value-forms.ts': 'a variable of an image, which is no secret',
  'page/try/snippets.ts': 'the call that is shown for clients in that language',
  'page/watch/words.ts': 'the last line of a traceback, which names the error',
  'status/banner.ts': 'an example of the interpreter that the banner names',
  'models/model-status.ts': 'an example of what /status names',
  'http/dialects/gateway/gateway.ts': 'a client of ours in that language',
};

const naming = readdirSync(SUPERVISOR, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.startsWith('runtimes/'))
  .filter((name) => PYTHON.test(readFileSync(join(SUPERVISOR, name), 'utf8')));

test('outside of its runtime, no file of the supervisor knows Python but those that are listed', () => {
  assert.deepEqual(naming.sort(), Object.keys(ALLOWED).sort());
});
