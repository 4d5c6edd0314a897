/**
 * No orphans, even when this process is killed with SIGKILL while a worker is inside native code and cannot notice.
 *
 * A tiny shell outlives us for a moment: it is started with the process groups that live, reads `+pid` and `-pid` lines,
 * and when the pipe ends it kills the groups still listed. Chosen over a death signal set at spawn (Linux only, needs setpriv, misses the
 * worker's own children) and over a watching thread in each worker (10 MB each, Node only).
 */
import { spawn, type ChildProcess } from 'node:child_process';

const SHELL = '/bin/sh';

const SCRIPT = `
groups="$*"
while read -r line; do
  pid=\${line#?}
  case $line in
    +*) groups="$groups $pid" ;;
    -*) kept=; for g in $groups; do [ "$g" = "$pid" ] || kept="$kept $g"; done; groups=$kept ;;
  esac
done
for g in $groups; do kill -9 "-$g" 2>/dev/null; done
exit 0
`;

/**
 * A guard that somebody killed is replaced at once: no gap. One that dies again and again gets pauses of 1, 2, 4 and
 * 8 s, time for a machine that is out of processes to recover, and then is given up: a shell that cannot run must not
 * cost a process per turn of the event loop for ever, and no worker's life depends on it.
 */
export const FIRST_PAUSE_MS = 1000;
export const MAX_REPLACEMENTS = 5;
/** A shell that lived this long works; its death is the first again. Well above all pauses together. */
export const HEALTHY_MS = 60_000;

/** `groups`: known to the shell from its first moment, as we may be killed in the next one. */
type StartShell = (groups: readonly number[]) => ChildProcess;

export class OrphanGuard {
  #shell: ChildProcess | null = null;
  #startedAtMs = 0;
  /** Deaths in a row of shells that did not live long. */
  #deaths = 0;
  #pause: NodeJS.Timeout | null = null;
  readonly #groups = new Set<number>();
  readonly #onMissing: (why: string) => void;
  readonly #startShell: StartShell;
  #closed = false;

  /** `onMissing` is told once, when there is no shell to guard with and none will be tried again. */
  constructor(onMissing: (why: string) => void, startShell: StartShell = startGuardShell) {
    this.#onMissing = onMissing;
    this.#startShell = startShell;
    this.#start();
  }

  /** Remembers a worker's process group. */
  add(pid: number): void {
    this.#groups.add(pid);
    this.#tell(`+${pid}`);
  }

  /** Forgets a group whose leader is gone. */
  remove(pid: number): void {
    this.#groups.delete(pid);
    this.#tell(`-${pid}`);
  }

  close(): void {
    this.#closed = true;
    if (this.#pause !== null) clearTimeout(this.#pause);
    this.#shell?.stdin?.end();
  }

  #start(): void {
    this.#startedAtMs = performance.now();
    let shell: ChildProcess;
    try {
      shell = this.#startShell([...this.#groups]);
    } catch (error) {
      this.#replaceLater(error instanceof Error ? error.message : String(error)); // such as ENOMEM
      return;
    }
    this.#shell = shell;
    shell.on('error', (error: NodeJS.ErrnoException) => this.#onDeath(shell, error.message, error.code));
    shell.on('exit', (code, signal) =>
      this.#onDeath(shell, `the shell keeps ending (${signal ?? `exit code ${code}`})`),
    );
    // Absent when there was no file descriptor to be had.
    shell.stdin?.on('error', () => {}); // dead: `exit` says so
    shell.unref();
    (shell.stdin as { unref?(): void } | null)?.unref?.();
  }

  #onDeath(shell: ChildProcess, why: string, code?: string): void {
    if (this.#closed || this.#shell !== shell) return;
    this.#shell = null;
    if (code === 'ENOENT' || code === 'EACCES') this.#onMissing(why);
    else this.#replaceLater(why);
  }

  #replaceLater(why: string): void {
    const healthy = performance.now() - this.#startedAtMs >= HEALTHY_MS;
    this.#deaths = healthy ? 1 : this.#deaths + 1;
    if (this.#deaths > MAX_REPLACEMENTS) {
      this.#onMissing(why);
      return;
    }
    if (this.#deaths === 1) {
      this.#start();
      return;
    }
    this.#pause = setTimeout(() => this.#start(), FIRST_PAUSE_MS * 2 ** (this.#deaths - 2));
    this.#pause.unref();
  }

  #tell(line: string): void {
    this.#shell?.stdin?.write(`${line}\n`);
  }
}

function startGuardShell(groups: readonly number[]): ChildProcess {
  // In a session of its own: a signal to our group or terminal must not end it first.
  return spawn(SHELL, ['-c', SCRIPT, 'banana-serve-orphan-guard', ...groups.map(String)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
    env: {},
  });
}
