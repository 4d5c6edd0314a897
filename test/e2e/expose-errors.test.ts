/** `--expose-errors` shows the stack of an error to clients; without it, only the log has the stack. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorOf } from '../helpers/ask.js';
import { withEachRuntime, type Language } from '../helpers/runtimes.js';
import { startHere } from '../helpers/here.js';
import { call } from '../helpers/server.js';

/** Each as its language prints it. */
const STACKS: Readonly<Record<Language, RegExp>> = {
  TypeScript: /^Error: secret path \/etc\/model\n\s+at .*answers\.ts:\d+/,
  Python:
    /^Traceback \(most recent call last\):\n(?: {2}File ".*answers\.py", line \d+, in .*\n(?: {4}.*\n)*)+ValueError: secret path \/etc\/model$/,
};

withEachRuntime(({ language, app }) => {
  for (const args of [['--expose-errors'], []]) {
    test(`an app that throws, ${args[0] ?? 'without the option'}`, { timeout: 240_000 }, async (t) => {
      const server = await startHere(app('answers'), { t, args });
      const answer = await call(`${server.url}/?kind=throws`, '', {});
      assert.equal(answer.status, 500);
      if (args.length > 0) {
        assert.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8');
        assert.match(answer.text, STACKS[language]);
      } else {
        assert.equal(errorOf(answer).code, 'SERVE_INFERENCE_FAILED');
        assert.doesNotMatch(answer.text, /secret|answers\.(?:ts|py)/);
      }
      await server.stop();
    });
  }
});
