/** Servers that were started with `--watch`. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { ask } from './ask.js';
import type { EditedApp } from './edited-app.js';
import { startHere } from './here.js';
import type { Server, StartOptions } from './server.js';

/** Starts a server of the file `name` in the app's folder. */
export function watched(
  t: TestContext,
  app: EditedApp,
  name: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
  start: (app: string, options: StartOptions) => Promise<Server> = startHere,
): Promise<Server> {
  return start(app.path(name), { t, args: ['--watch', ...args], env });
}

/** The answer of a call, which must be 200. */
export async function answer(server: Pick<Server, 'url'>): Promise<Record<string, unknown>> {
  const given = await ask(server, {});
  assert.equal(given.status, 200, given.text);
  return given.json();
}

/** Status and state of `/readyz`. */
export async function readiness(server: Pick<Server, 'url'>): Promise<[number, string]> {
  const response = await fetch(`${server.url}/readyz`);
  return [response.status, ((await response.json()) as { state: string }).state];
}

/** The files that the log names as changed, start by start. */
export function changes(server: Server): string[] {
  return [...server.stderr().matchAll(/(\S.*) changed: starting the workers again/g)].map(
    ([, files = '']) => files.split(' INFO ').at(-1)?.replace(/^.*: /, '') ?? '',
  );
}
