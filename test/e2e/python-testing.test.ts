/** `banana_serve.testing`, with which apps in Python are tested. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needs } from '../helpers/needs.js';
import { run } from '../helpers/packed.js';
import { presentPythons } from '../helpers/pythons.js';
import { ROOT } from '../helpers/server.js';

const LIMIT = { timeout: 240_000 };

const FAILED_CALL = `
import sys
from banana_serve.testing import serve

with serve(sys.argv[1], "--access-log") as server:
    answer = server.call({"do": "raise"})
print(answer.status_code, answer.json["error"]["code"], "ValueError: secret" in server.log, "INFO: POST /" in server.log)
`;

test(
  'banana_serve.testing, from a clone: the answer of a failed call, its traceback in the log, options',
  { ...LIMIT, skip: needs('python3') },
  async () => {
    const python = presentPythons()[0]?.path ?? '';
    const env = { ...process.env, PYTHONPATH: `${ROOT}worker/python`, PYTHONDONTWRITEBYTECODE: '1' };
    const app = `${ROOT}test/fixtures/python-apps/misbehaves.py`;
    const { stdout } = await run(python, ['-c', FAILED_CALL, app], { env });
    assert.match(stdout, /^500 SERVE_INFERENCE_FAILED True True$/m);
  },
);
