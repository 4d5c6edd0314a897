/**
 * Kills the workers if this process dies, even by SIGKILL and while a worker is inside native code and cannot notice.
 *
 * A small shell outlives this process for a moment: it is started with the existing process groups, reads `+pid` and `-pid`
 * lines, and kills the groups still listed when its pipe ends. Chosen over a death signal set at spawn (Linux only, needs
 * setpriv, misses the worker's own children) and over a watching thread in each worker (10 MB each, Node only).
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
 * A shell that is killed is replaced at once. If it dies repeatedly, there are pauses of 1, 2, 4 and 8 s, in which a machine
 * that is out of processes can recover; then no more are started: a shell that cannot run must not cost a process per turn
 * of the event loop for ever, and no worker depends on it.
 */
export const FIRST_PAUSE_MS = 1000;
export const MAX_REPLACEMENTS = 5;
/** A shell that lived this long works: its death counts as the first again. Well above the sum of all pauses. */
export const HEALTHY_MS = 60_000;

export class OrphanGuard {
  #shell: ChildProcess | null = null;
  #startedAtMs = 0;
  /** Deaths in a row of shells that did not live long. */
  #deaths = 0;
  #pause: NodeJS.Timeout | null = null;
  readonly #groups = new Set<number>();
  readonly #onMissing: (why: string) => void;
  readonly #startShell: typeof startGuardShell;
  #closed = false;

  /** `onMissing` is called once, when there is no shell and no other will be started. */
  constructor(onMissing: (why: string) => void, startShell = startGuardShell) {
    this.#onMissing = onMissing;
    this.#startShell = startShell;
    this.#start();
  }

  /** Adds a worker's process group. */
  add(pid: number): void {
    this.#groups.add(pid);
    this.#send(`+${pid}`);
  }

  /** Removes a group whose leader is gone. */
  remove(pid: number): void {
    this.#groups.delete(pid);
    this.#send(`-${pid}`);
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
    // stdin is null if the system lacked file descriptors.
    shell.stdin?.on('error', () => {}); // the shell is dead; `exit` follows
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

  #send(line: string): void {
    this.#shell?.stdin?.write(`${line}\n`);
  }
}

/** `groups` are arguments of the shell, because this process may be killed before it can write to its pipe. */
function startGuardShell(groups: readonly number[]): ChildProcess {
  // In a session of its own: a signal to our group or terminal must not end it first.
  return spawn(SHELL, ['-c', SCRIPT, 'banana-serve-orphan-guard', ...groups.map(String)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
    env: {},
  });
}
