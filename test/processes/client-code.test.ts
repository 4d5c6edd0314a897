/** The code of the client runs in browsers: it is small, and needs nothing of Node. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { build } from 'esbuild';
import ts from 'typescript';
import { ROOT } from '../helpers/server.js';

const CLIENT = join(ROOT, 'client.ts');

test('it is less than 4 KB, alone', async () => {
  const { outputFiles } = await build({
    entryPoints: [CLIENT],
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'browser',
  });
  const [{ contents } = assert.fail()] = outputFiles;
  assert.ok(contents.length < 4000, `${contents.length} bytes`);
});

test("it compiles with a browser's types alone", () => {
  const program = ts.createProgram([CLIENT], {
    lib: ['lib.es2023.d.ts', 'lib.dom.d.ts'],
    types: [],
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.NodeNext,
    strict: true,
    noEmit: true,
  });
  const problems = program.getSemanticDiagnostics(program.getSourceFile(CLIENT));
  assert.deepEqual(
    problems.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' ')),
    [],
  );
});
