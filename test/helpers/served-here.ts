/**
 * Servers in the process of the test, with the flags of a command: for rows over HTTP that need no signal, no log and no exit
 * code. The first costs as much CPU as a command, each further one a sixth of it.
 */
import assert from 'node:assert/strict';
import { after, before, beforeEach } from 'node:test';
import { OPTIONS, OPTION_NAMES } from '../../supervisor/options/table.js';
import { serve } from '../../supervisor/serve.js';
import { makeCues, type Cues, type Ending } from './cues.js';
import { eventually, isAlive, type Server, type StartOptions, type Status } from './server.js';

/** Variables of `env` are those of this process until it stops: one server with some at a time. */
export interface HereOptions extends Pick<StartOptions, 'args' | 'cwd' | 'env' | 'expectedRestarts'> {
  readonly cues?: Cues;
}

export interface ServedHere extends Pick<Server, 'url' | 'status' | 'until'> {
  /** Stops it, and checks `expectedRestarts` and that no worker is left. */
  stop(): Promise<void>;
}

/** Starts it, and resolves once its port is open. Killed when the test, or the group of tests, ends. */
export async function serveHere(
  t: Ending,
  app: string | null,
  options: HereOptions = {},
): Promise<ServedHere> {
  const { args = [], cwd, cues, expectedRestarts = 0 } = options;
  const env = { ...options.env, ...cues?.env };
  Object.assign(process.env, env); // workers inherit it
  const given = { ...(app !== null && { app }), ...(cwd !== undefined && { cwd }) };
  const handle = await serve(given, flagsOf(['--host', '127.0.0.1', '--port', '0', ...args]));
  handle.ready.catch(() => {}); // its status tells
  const forget = (): void => Object.keys(env).forEach((name) => delete process.env[name]);
  t.after(() => {
    handle.kill();
    forget();
  });
  const status = (): Promise<Status> => Promise.resolve(handle.status() as unknown as Status);
  return {
    url: handle.url,
    status,
    until: async (test, limitMs = 90_000) => {
      const isSo = async (): Promise<boolean> => test(await status());
      await eventually(isSo, limitMs, () => `last status: ${JSON.stringify(handle.status(), null, 1)}`);
      return status();
    },
    stop: async () => {
      const workers = (await status()).models.flatMap((model) => model.workers);
      await handle.close();
      forget();
      const restarts = workers.reduce((sum, worker) => sum + worker.restarts, 0);
      assert.equal(restarts, expectedRestarts, 'restarts of workers');
      const left = workers.flatMap(({ pid }) => (pid !== null && isAlive(pid) ? [pid] : []));
      assert.deepEqual(left, [], 'no worker outlives its server');
    },
  };
}

/** Called in a `describe`: one for all of its tests, which leave it as they found it. */
export function shareHere(
  app: string | null,
  options: HereOptions = {},
): { readonly server: ServedHere; readonly cues: Cues } {
  let server: ServedHere | null = null;
  before(async () => {
    server = await serveHere({ after: () => {} }, app, { ...options, cues });
    await server.until(({ state, models }) => state === 'ready' || models.length === 0);
  });
  after(() => server?.stop());
  const cues = makeCues({ after }); // registered last: the app notes its end
  beforeEach(() => cues.forget());
  return {
    cues,
    get server() {
      assert.ok(server !== null, 'the server has started');
      return server;
    },
  };
}

/** Flags, with their values behind them, as the command line reads them. */
function flagsOf(args: readonly string[]): Parameters<typeof serve>[1] {
  const values: Record<string, string | boolean> = { logLevel: 'silent' };
  const modelFlags: string[] = [];
  for (const [i, flag] of args.entries()) {
    if (!flag.startsWith('--')) continue; // the value of the one before
    const value = args[i + 1];
    const hasValue = value !== undefined && !value.startsWith('--');
    if (flag === '--model') {
      modelFlags.push(value ?? '');
      continue;
    }
    const name = OPTION_NAMES.find((one) => OPTIONS[one].flag === flag);
    assert.ok(name !== undefined, `${flag} is an option`);
    values[name] = hasValue ? value : !flag.startsWith('--no-');
  }
  return { flags: { values, where: (name) => name }, modelFlags };
}
