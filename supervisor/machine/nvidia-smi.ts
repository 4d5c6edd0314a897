/** Runs nvidia-smi, bounded in time. It is never waited for longer: inside a driver that hangs, a process does not even die of SIGKILL. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export interface Said {
  readonly text: string;
  /** Why it said nothing that can be used; null if all went well. */
  readonly problem: string | null;
}

export function hasNvidiaSmi(env: NodeJS.ProcessEnv): boolean {
  return (env['PATH'] ?? '')
    .split(delimiter)
    .some((folder) => folder !== '' && existsSync(join(folder, 'nvidia-smi')));
}

/** @throws the reason of `stop` */
export async function askNvidiaSmi(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  limitMs: number,
  stop?: AbortSignal,
): Promise<Said> {
  stop?.throwIfAborted();
  const { execa } = await import('execa'); // only where there is something to ask
  const child = execa('nvidia-smi', args, {
    reject: false,
    stdio: ['ignore', 'pipe', 'pipe'],
    env,
    extendEnv: false,
  });
  const late = delay(limitMs, null, { ref: false, ...(stop && { signal: stop }) }).catch(() => null);
  const result = await Promise.race([child, late]);
  if (result === null) {
    child.kill('SIGKILL');
    child.stdout.destroy();
    child.stderr.destroy();
    child.unref();
    stop?.throwIfAborted();
    return { text: '', problem: `nvidia-smi did not answer in ${limitMs} ms` };
  }
  if (!result.failed) return { text: result.stdout, problem: null };
  const said = `${result.stdout}\n${result.stderr}`.trim().split('\n')[0] ?? '';
  return { text: '', problem: `nvidia-smi failed (exit code ${result.exitCode ?? 'none'}): ${said}` };
}
