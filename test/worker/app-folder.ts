/** Apps written for one test, each in a folder of its own outside the project, as a user's would be. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Writes the files and returns their folder, which is removed after the test. */
export function appFolder(
  t: { after(undo: () => void): void },
  files: Readonly<Record<string, string>>,
): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'banana-app-')));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}
