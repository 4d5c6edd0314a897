/** Programs of a few lines that import this package. */
import { spawn } from 'node:child_process';
import { ROOT, eventually } from './server.js';

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program in this package's folder. `said` resolves with its first whole line. */
export function runProgram(code: string, type: 'module' | 'commonjs' = 'module') {
  const child = spawn(process.execPath, [`--input-type=${type}`, '-e', code], { cwd: ROOT });
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (chunk: Buffer) => (texts[name] += chunk.toString()));
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (exitCode, signal) => resolve({ code: exitCode, signal, ...texts }));
  });
  const said = async (): Promise<string> => {
    await eventually(
      () => texts.stdout.includes('\n'),
      60_000,
      () => `nothing was said: ${texts.stderr}`,
    );
    return texts.stdout.split('\n')[0] as string;
  };
  return { child, ended, said };
}
