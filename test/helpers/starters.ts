/** Servers that something else started: npm, a shell, a terminal. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { CLI, ROOT, eventually, isAlive, runCommand, type RunningCommand, type Status } from './server.js';

export interface StartedServer {
  readonly url: string;
  /** The server's own process. */
  readonly pid: number;
  readonly starter: RunningCommand;
  readonly printed: () => string;
  status(): Promise<Status>;
  untilState(state: string): Promise<void>;
  untilEnded(): Promise<void>;
}

/** A folder with `npm start` and other scripts, in which `banana-serve` is this checkout's. */
export function npmProject(t: TestContext, scripts: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'banana-npm-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
  const command = `#!/bin/sh\nexec '${process.execPath}' '${CLI}' "$@"\n`;
  writeFileSync(join(folder, 'node_modules/.bin/banana-serve'), command, { mode: 0o755 });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'project', type: 'module', scripts }));
  return folder;
}

/** Runs `command`, and resolves once the server that it starts listens. `readOutput`: where that prints, if elsewhere. */
export async function startBy(
  t: TestContext,
  [file, ...args]: readonly [string, ...string[]],
  options: {
    readonly cwd?: string;
    readonly env?: Readonly<Record<string, string | undefined>>;
    readonly readOutput?: () => string;
  } = {},
): Promise<StartedServer> {
  const env = {
    ...ALONE,
    BANANA_PORT: '0',
    BANANA_HOST: '127.0.0.1',
    BANANA_DRAIN_LAG: '0s',
    ...options.env,
  };
  const starter = runCommand(args, { t, command: file, cwd: options.cwd ?? ROOT, env });
  const printed = (): string => (options.readOutput?.() ?? '') + starter.stdout() + starter.stderr();
  const urlOf = (): string | undefined => / on (http:\/\/[\d.:]+)/.exec(printed())?.[1];
  await eventually(
    () => urlOf() !== undefined,
    90_000,
    () => `no server:\n${printed()}`,
  );
  const url = urlOf() as string;
  const status = async (): Promise<Status> => (await (await fetch(`${url}/status`)).json()) as Status;
  const { pid } = (await status()) as Status & { pid: number };
  t.after(() => isAlive(pid) && process.kill(pid, 'SIGKILL'));
  return {
    url,
    pid,
    starter,
    printed,
    status,
    untilState: (state) =>
      eventually(
        async () => (await status()).state === state,
        60_000,
        () => `never ${state}:\n${printed()}`,
      ),
    untilEnded: () =>
      eventually(
        () => !isAlive(pid),
        60_000,
        () => `lives on:\n${printed()}`,
      ),
  };
}

/** Removes the variables of `npm test` from the environment, so that a server runs under npm only if a test asks for it. */
const ALONE = Object.fromEntries(
  Object.keys(process.env).flatMap((name) => (name.startsWith('npm_') ? [[name, undefined]] : [])),
);
