/** A machine with a simulated GPU: `nvidia-smi` is a script. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { TestContext } from 'node:test';

/** The environment of a program that shall see one card, which no worker is given. Gone when the test ends. `asked`: gets a line for each question. */
export function withNvidiaSmi(t: TestContext, asked = '/dev/null'): Record<string, string> {
  const folder = mkdtempSync(join(tmpdir(), 'banana-metrics-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const script = `#!/bin/sh
[ "$1" = -L ] && exit 0
echo "$*" >> '${asked}'
echo '0, GPU-aaaa, 40960, 1024, 37, NVIDIA A100'
`;
  writeFileSync(join(folder, 'nvidia-smi'), script);
  chmodSync(join(folder, 'nvidia-smi'), 0o755);
  return { PATH: `${folder}${delimiter}${process.env['PATH'] ?? ''}` };
}
