/**
 * A server in the process of its test, where all but the first cost a twentieth of the CPU of a process. For tests that call
 * over HTTP and read the log. Signals, exit codes, descriptors and memory need the command: `startServer`. Workers have the
 * working directory of this process; `cwd` is the folder of relative paths in options, and of config files.
 */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
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
  options: Omit<StartOptions, 'command'> = {},
): Promise<Server> {
  const { t, args = [], env = {}, cwd = ROOT, expectedRestarts = 0, isAddressGiven = false } = options;
  const { values, modelFlags } = readFlags([...(isAddressGiven ? [] : FREE_PORT), ...args]);
  const restoreEnv = setEnv(env);
  const given = { cwd, ...(app !== null && { app }) };
  const where = (name: string): string => OPTIONS[name as keyof typeof OPTIONS].flag;
  const plan = await planServer(given, { flags: { values, where }, modelFlags });
  const { jobs: place, jobRetention: retentionMs, jobBytes: maxBytes } = plan.resolved.options;
  const jobStore = await openJobStore({ place, retentionMs, maxBytes, cwd });
  const [out, err] = [new PassThrough(), new PassThrough()];
  const handle = await withStreams(out, err, () => new FrontServer(plan, jobStore)).open();
  t?.after(() => handle.kill());
  const ended = handle.ended.then(({ reason }) => {
    restoreEnv();
    return { code: CODES[reason].code, signal: null };
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

/** The first signal of each kind, as the command obeys it. */
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

/** Workers get what this process has in its environment. Returns what undoes it. */
function setEnv(env: Readonly<Record<string, string | undefined>>): () => void {
  const before = Object.keys(env).map((name) => [name, process.env[name]] as const);
  const apply = ([name, value]: readonly [string, string | undefined]): void => {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  };
  Object.entries(env).forEach(apply);
  return () => before.forEach(apply);
}

/** A server takes the streams of its process when it is made. */
function withStreams<T>(stdout: PassThrough, stderr: PassThrough, make: () => T): T {
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
