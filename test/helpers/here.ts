/**
 * A server in the process of its test, where all but the first cost a twentieth of the CPU of a process. For tests that call
 * over HTTP and read the log. Signals, exit codes, descriptors and memory need the command: `startServer`. Workers have the
 * working directory of this process; `cwd` is the folder of relative paths in options, and of config files.
 */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { fstatSync, type Stats } from 'node:fs';
import { PassThrough } from 'node:stream';
import { EXIT_CODES } from '../../supervisor/command/server-process.js';
import { openJobStore } from '../../supervisor/jobs/open-job-store.js';
import { OPTIONS, OPTION_NAMES } from '../../supervisor/options/table.js';
import { planServer } from '../../supervisor/plan/plan-server.js';
import { Server as FrontServer } from '../../supervisor/server/server.js';
import type { ServerHandle } from '../../supervisor/server/server-handle.js';
import { FREE_PORT, ROOT, facadeOf, gather, type Server, type StartOptions, type Status } from './server.js';

/** As `startServer`, with the same flags. Resolves once the port is open. */
export async function startHere(
  app: string | null,
  options: Omit<StartOptions, 'command' | 'key'> = {},
): Promise<Server> {
  assert.ok(!('command' in options), 'a server in this process has no command of its own');
  const { t, args = [], env = {}, cwd = ROOT, expectedRestarts = 0, isAddressGiven = false } = options;
  const flags = [...(isAddressGiven ? [] : FREE_PORT), ...args];
  const [out, err] = [new PassThrough(), new PassThrough()];
  const restoreEnv = setEnv(env);
  const handle = await open({ cwd, ...(app !== null && { app }) }, flags, out, err).catch(
    (thrown: unknown) => {
      restoreEnv();
      throw thrown;
    },
  );
  const ended = handle.ended.then(({ reason }) => {
    restoreEnv();
    return { code: CODES[reason].code, signal: null };
  });
  t?.after(async () => {
    handle.kill();
    await ended; // the next test has its own environment
  });
  const kill = (signal = 'SIGTERM'): boolean => {
    assert.ok(signal in ENDS, `${signal} needs a process of its own`);
    ENDS[signal as keyof typeof ENDS](handle);
    return true;
  };
  const [stdout, stderr] = [gather(out), gather(err)];
  return facadeOf({
    url: handle.url,
    process: { pid: process.pid, kill } as unknown as ChildProcess,
    ended,
    expectedRestarts,
    stdout: stdout.text,
    stdoutBytes: stdout.bytes,
    stderr: stderr.text,
    status: () => Promise.resolve(JSON.parse(JSON.stringify(handle.status())) as Status),
  });
}

async function open(
  given: { readonly cwd: string; readonly app?: string },
  args: readonly string[],
  out: PassThrough,
  err: PassThrough,
): Promise<ServerHandle> {
  const { values, modelFlags } = readFlags(args);
  const where = (name: string): string => OPTIONS[name as keyof typeof OPTIONS].flag;
  const plan = await planServer(given, { flags: { values, where }, modelFlags });
  const { jobs: place, jobRetention: retentionMs, jobBytes: maxBytes } = plan.resolved.options;
  const jobStore = await openJobStore({ place, retentionMs, maxBytes, cwd: given.cwd });
  return withStreams(out, err, () => new FrontServer(plan, jobStore)).open();
}

/** The first signal of each kind, as the command obeys it, but without `--drain-lag`. */
const ENDS = {
  SIGINT: (handle: ServerHandle) => void handle.close(),
  SIGTERM: (handle: ServerHandle) => void handle.close(),
  SIGKILL: (handle: ServerHandle) => handle.kill(),
};

const CODES = {
  drained: EXIT_CODES.drained,
  cut: EXIT_CODES.cut,
  failed: EXIT_CODES.app,
  killed: EXIT_CODES.terminated,
};

/** Reads flags as the command line does: values are text, switches are true or, behind `--no-`, false. */
function readFlags(args: readonly string[]): { values: Record<string, unknown>; modelFlags: string[] } {
  const values: Record<string, unknown> = {};
  const modelFlags: string[] = [];
  for (let i = 0; i < args.length; i += 1) {
    const flag = args[i] as string;
    if (flag === '--model') {
      modelFlags.push(args[(i += 1)] as string);
      continue;
    }
    const name = OPTION_NAMES.find((one) => OPTIONS[one].flag === flag);
    assert.ok(name !== undefined, `${flag} is an option`);
    const { value, repeats } = OPTIONS[name];
    if (value === null) values[name] = !flag.startsWith('--no-');
    else if (repeats === true) values[name] = [...((values[name] ?? []) as string[]), args[(i += 1)]];
    else values[name] = args[(i += 1)];
  }
  return { values, modelFlags };
}

type Env = Readonly<Record<string, string | undefined>>;

/** The environments of the servers that run, the latest last, upon that of this process. */
const environments: Env[] = [{ ...process.env }];

/** Workers get what this process has in its environment when they start. Returns what undoes it, in whatever order servers end. */
function setEnv(env: Env): () => void {
  const apply = (): void => {
    for (const name of Object.keys(env)) {
      const value = environments.findLast((one) => name in one)?.[name];
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  };
  environments.push(env);
  apply();
  return () => {
    environments.splice(environments.lastIndexOf(env), 1);
    apply();
  };
}

/** A server takes the streams of its process when it is made, if they are pipes; else it writes to the files themselves. */
function withStreams<T>(stdout: PassThrough, stderr: PassThrough, make: () => T): T {
  const isPipe = (stat: Stats): boolean => stat.isFIFO() || stat.isSocket();
  assert.ok(isPipe(fstatSync(1)) && isPipe(fstatSync(2)), 'the prints are heard under `node --test` only');
  const own = ['stdout', 'stderr'].map(
    (name) => [name, Object.getOwnPropertyDescriptor(process, name)] as const,
  );
  for (const [name, value] of Object.entries({ stdout, stderr }))
    Object.defineProperty(process, name, { value, configurable: true });
  try {
    return make();
  } finally {
    for (const [name, descriptor] of own)
      Object.defineProperty(process, name, descriptor as PropertyDescriptor);
  }
}
