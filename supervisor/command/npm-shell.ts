/**
 * npm starts a command (`npx banana-serve`, `npm start`, `npm run serve`) through `sh -c`. npm forwards a SIGTERM only to
 * that shell, which dies and does not forward it; npm ends, and the server would keep running and hold its port. So if npm's
 * own shell started this process, the end of that shell counts as a SIGTERM.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Interval of checks of the parent's pid: short compared with a drain, long compared with the cost of a check. */
const ASK_MS = 200;

interface Process {
  /** Arguments, joined by spaces. */
  readonly command: string;
  readonly group: number;
}

/**
 * Calls `onEnd` once when npm's shell has ended; never if this process was not started directly by npm's shell. Does not
 * keep the process alive. The returned function ends the watch.
 */
export function watchNpmShell(onEnd: () => void): () => void {
  const parent = process.ppid;
  if (!isNpmEnvironment(process.env) || !isNpmShell(process.env, lookUp(parent), lookUp(process.pid)))
    return () => {};
  let watched = true;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    // A signal that was sent to this process and the shell at the same time is handled first.
    setImmediate(() => {
      if (watched) onEnd();
    });
  }, ASK_MS);
  timer.unref();
  return () => {
    watched = false;
    clearInterval(timer);
  };
}

function isNpmEnvironment(env: NodeJS.ProcessEnv): boolean {
  return (env['npm_config_user_agent'] ?? '').startsWith('npm/') && Boolean(env['npm_lifecycle_script']);
}

/**
 * Whether `parent` is the shell in which npm runs the script of `env`, and waits for `own` to end. The environment alone
 * proves nothing, because every process that the script starts inherits it. A script that uses `&`, nohup or setsid wants
 * its command to outlive the shell.
 */
export function isNpmShell(env: NodeJS.ProcessEnv, parent: Process | null, own: Process | null): boolean {
  if (!isNpmEnvironment(env) || parent === null || own?.group !== parent.group) return false;
  const script = /^\S+ -c (.*)$/s.exec(parent.command)?.[1];
  if (script?.startsWith(env['npm_lifecycle_script'] as string) !== true) return false;
  const background = script.replaceAll(/&&|>&|&>/g, '').includes('&');
  return !background && !/\b(?:nohup|setsid)\b/.test(script);
}

/** Null if there is no such process or it cannot be looked up. */
function lookUp(pid: number): Process | null {
  try {
    return process.platform === 'linux' ? readProc(pid) : askPs(pid);
  } catch {
    return null;
  }
}

function readProc(pid: number): Process {
  const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1).join(' ');
  // State, parent and group follow the name, which is in parentheses and may contain any character.
  const group = /\) \S \d+ (\d+) [^)]*$/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1];
  return { command, group: Number(group) };
}

function askPs(pid: number): Process {
  const output = execFileSync('ps', ['-o', 'pgid=,args=', '-p', String(pid)], {
    encoding: 'utf8',
    timeout: 2000,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [, group, command = ''] = /^\s*(\d+) (.*)$/s.exec(output.trimEnd()) ?? [];
  return { command, group: Number(group) };
}
