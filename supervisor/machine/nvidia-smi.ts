/** Runs nvidia-smi with a time limit. Its end is never awaited: a process inside a hanging driver does not even die of SIGKILL. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export interface SmiResult {
  readonly text: string;
  /** The reason if there is no usable output; null after success. */
  readonly problem: string | null;
}

export function hasNvidiaSmi(env: NodeJS.ProcessEnv): boolean {
  return (env['PATH'] ?? '')
    .split(delimiter)
    .some((folder) => folder !== '' && existsSync(join(folder, 'nvidia-smi')));
}

/** @throws the reason of `stop` */
export async function runNvidiaSmi(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  limitMs: number,
  stop?: AbortSignal,
): Promise<SmiResult> {
  stop?.throwIfAborted();
  const { execa } = await import('execa'); // loaded only if nvidia-smi exists
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
  const message = `${result.stdout}\n${result.stderr}`.trim().split('\n')[0] ?? '';
  return { text: '', problem: `nvidia-smi failed (exit code ${result.exitCode ?? 'none'}): ${message}` };
}
