/** One server for a group of tests that need the same one, and leave it as they found it. */
import assert from 'node:assert/strict';
import { after, before, beforeEach } from 'node:test';
import { makeCues, type Cues } from './cues.js';
import { startHere } from './here.js';
import { startServer, type Server, type StartOptions } from './server.js';

const LIMIT = { timeout: 240_000 };

export interface SharedServer {
  /** For the tests of the group: it is not there before them. */
  readonly server: Server;
  /** Each test begins without a cue and without a note. */
  readonly cues: Cues;
}

/**
 * Called in a `describe`: the server starts before the first of its tests and is stopped, and checked, after the last.
 * `app` null: its models have names.
 */
export function shareServer(
  app: string | null,
  options: StartOptions = {},
  start: (app: string | null, options: StartOptions) => Promise<Server> = startServer,
): SharedServer {
  let server: Server | null = null;
  before(async () => {
    server = await start(app, { ...options, env: { ...options.env, ...cues.env } });
    // Without a model it is not ready, and has nothing to wait for.
    await server.until(({ state, models }) => state === 'ready' || models.length === 0);
  }, LIMIT);
  after(async () => {
    const kill = (): unknown => server?.process.kill('SIGKILL');
    const late = setTimeout(kill, LIMIT.timeout);
    const end = await server?.stop().finally(() => {
      clearTimeout(late);
      kill(); // where it could not even be asked to end
    });
    assert.equal(end?.signal ?? null, null, 'the server has ended in time');
  });
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

/** As `shareServer`, in the process of the test. */
export function shareHere(app: string | null, options: Omit<StartOptions, 'key'> = {}): SharedServer {
  return shareServer(app, options, startHere);
}
