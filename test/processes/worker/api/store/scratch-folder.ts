import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Gone after the test. */
export function scratchFolder(t: { after(undo: () => void): void }): string {
  const folder = mkdtempSync(join(tmpdir(), 'banana-store-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
