/** Projects that `banana-serve new` has written: called as in the README, and started as the image that they build. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { TestContext } from 'node:test';
import type { Image } from './dockerfile.js';
import { holdPort } from './held-port.js';
import { install, run } from './packed.js';
import { ROOT, eventually } from './server.js';

/** Sends the README's first call with curl. */
export async function assertAnswersAsInReadme(url: string): Promise<void> {
  const page = readFileSync(`${ROOT}README.md`, 'utf8');
  const [, sent, got] = /\$ curl -d '(.*)' localhost:8000\n(\{.*)\n/.exec(page) ?? [];
  const { stdout } = await run('curl', ['-sS', '-d', sent as string, url]);
  assert.equal(stdout, got);
}

/** Does what `banana-serve new` printed as next, in a shell, up to `npm test`. */
export async function followSteps(printed: string, cwd: string): Promise<void> {
  const [, steps = ''] = /\nNext:\n([^]*) {2}npm test\n {2}npm run dev\n$/.exec(printed) ?? [];
  const env = { ...process.env, npm_config_prefer_offline: 'true' };
  await install('sh', ['-ec', steps], { cwd, env });
}

export interface StartedImage {
  readonly url: string;
  /** As this namespace counts. */
  readonly pid: number;
  readonly ended: Promise<number | null>;
}

/** Starts the image as process 1 of a PID namespace of its own, on a port that nothing else has after its end. Needs `unshare`. */
export async function startImage(
  t: TestContext,
  { cmd, env }: Pick<Image, 'cmd' | 'env'>,
  cwd: string,
  more: Readonly<Record<string, string | undefined>>,
): Promise<StartedImage> {
  const namespace = ['--map-root-user', '--mount', '--pid', '--fork', '--mount-proc', '--kill-child'];
  const child = spawn('unshare', [...namespace, ...cmd], {
    cwd,
    env: { ...process.env, ...env, ...more, PORT: String(await holdPort()), BANANA_HOST: '127.0.0.1' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const url = await urlSaid(child);
  const [pid] = childrenOf(child.pid as number);
  return { url, pid: pid as number, ended };
}

async function urlSaid(child: ChildProcess): Promise<string> {
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const urlOf = (): string | undefined => / on (http:\/\/\S+)\n/.exec(said)?.[1];
  await eventually(
    () => urlOf() !== undefined,
    60_000,
    () => `it does not listen: ${said}`,
  );
  return urlOf() as string;
}

/** Numbers of its child processes. */
export function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
}
