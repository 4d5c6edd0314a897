/** A folder with a small page in place of the built one: a document and a script, as they are and compressed. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';

export const INDEX =
  '<!doctype html><title>page</title><script type="module" src="_k/page/page-abc.js"></script>';
export const SCRIPT = `/* ${'long '.repeat(400)}*/`;

/** Removed when the test ends, or the group of tests. */
export function makePageFolder({ after }: { after(then: () => void): void }): string {
  const folder = mkdtempSync(join(tmpdir(), 'banana-page-'));
  after(() => rmSync(folder, { recursive: true }));
  const files = {
    'index.html': { type: 'text/html; charset=utf-8', text: INDEX },
    'page-abc.js': { type: 'text/javascript; charset=utf-8', text: SCRIPT },
  };
  const types: Record<string, string> = {};
  for (const [name, { type, text }] of Object.entries(files)) {
    writeFileSync(join(folder, name), text);
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(text));
    writeFileSync(join(folder, `${name}.gz`), gzipSync(text));
    types[name] = type;
  }
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(types));
  writeFileSync(join(folder, 'licenses.txt'), 'is not listed');
  return folder;
}
