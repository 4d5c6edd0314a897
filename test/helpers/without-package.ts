/** A command of this checkout that cannot find a package, as where it was not installed. */
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { ROOT } from './server.js';

/** `missing`: the package, or the scope of packages, as it is named in node_modules. Returns the path of the command. */
export function withoutPackage(t: TestContext, missing: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'banana-without-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  cpSync(join(ROOT, 'dist'), join(folder, 'dist'), {
    recursive: true,
    filter: (path) => !/dist\/(test|bench)/.test(path),
  });
  writeFileSync(join(folder, 'package.json'), '{"type":"module","version":"0"}');
  mkdirSync(join(folder, 'node_modules'));
  for (const name of readdirSync(join(ROOT, 'node_modules')))
    if (name !== missing && !name.startsWith('.'))
      symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
  const command = join(folder, 'command');
  writeFileSync(command, `#!/bin/sh\nexec ${process.execPath} ${folder}/dist/supervisor/cli.js "$@"\n`);
  chmodSync(command, 0o755);
  return command;
}
