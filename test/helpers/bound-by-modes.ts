/** The command as any user runs it: root, too, may read and write only what the mode of a file grants. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProgramName } from './needs.js';
import { CLI } from './server.js';

/** Further requirements of a test that uses `boundByModes`. */
export const BOUND_BY_MODES: readonly ProgramName[] = process.getuid?.() === 0 ? ['setpriv'] : [];

/** Writes a program into `folder`, for `StartOptions.command`; undefined where the command is bound as it is. */
export function boundByModes(folder: string): string | undefined {
  if (BOUND_BY_MODES.length === 0) return undefined;
  const without = '-dac_override,-dac_read_search';
  const path = join(folder, 'bound-by-modes');
  const setpriv = `setpriv --bounding-set=${without} --inh-caps=${without}`;
  writeFileSync(path, `#!/bin/sh\nexec ${setpriv} '${process.execPath}' '${CLI}' "$@"\n`, { mode: 0o755 });
  return path;
}
