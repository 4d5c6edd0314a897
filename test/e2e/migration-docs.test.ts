/** docs/from-potassium.md and docs/from-banana.md: every app on them is served, its command run, its answer compared. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { serve } from '../../supervisor/serve.js';
import { needs } from '../helpers/needs.js';
import { ROOT } from '../helpers/server.js';

interface Example {
  readonly title: string;
  /** `app.ts` or `app.py`. */
  readonly file: string;
  readonly app: string;
  readonly command: string;
  readonly language: string;
  readonly answer: string;
}

const EXAMPLE = /```(ts|python)\n(.*?)```\n\n {4}((?:curl|node) [^\n]+)\n\n```(json|text)\n(.*?)\n```/gs;

function examplesOf(page: string): Example[] {
  const text = readFileSync(`${ROOT}docs/${page}`, 'utf8');
  const examples = [...text.matchAll(EXAMPLE)].map(
    ([, fence, app = '', command = '', language = '', answer = ''], i) => ({
      title: `${page}, example ${i + 1}`,
      file: fence === 'ts' ? 'app.ts' : 'app.py',
      app,
      command,
      language,
      answer,
    }),
  );
  assert.equal(
    examples.length,
    text.match(/```(?:ts|python)\n/g)?.length,
    'every app has a call and an answer',
  );
  return examples;
}

function writeApp(t: TestContext, file: string, source: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'banana-docs-'));
  t.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(ROOT, join(folder, 'node_modules/banana-serve'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  const path = join(folder, file);
  writeFileSync(path, source);
  return path;
}

for (const { title, file, app, command, language, answer } of [
  ...examplesOf('from-potassium.md'),
  ...examplesOf('from-banana.md'),
]) {
  const programs = [
    ...(command.startsWith('curl') ? (['curl'] as const) : []),
    ...(file === 'app.py' ? (['python3'] as const) : []),
  ];
  const skip = needs(...programs);
  test(title, { timeout: 240_000, skip }, async (t) => {
    const path = writeApp(t, file, app);
    const server = await serve({ app: path, host: '127.0.0.1', port: 0, logLevel: 'silent' });
    t.after(() => server.kill());
    await server.ready;
    const line = command.replace('localhost:8000', new URL(server.url).host);
    assert.notEqual(line, command);
    const { stdout } = await promisify(execFile)('sh', ['-c', line.replace(/^curl/, 'curl -sS')]);
    if (language === 'json') assert.deepEqual(JSON.parse(stdout), JSON.parse(answer));
    else assert.equal(stdout.trim(), answer);
    await server.close();
  });
}
