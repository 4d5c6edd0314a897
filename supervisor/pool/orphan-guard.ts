/**
 * No orphans, even when this process is killed with SIGKILL while a worker is inside native code and cannot notice.
 *
 * A tiny shell outlives us for a moment: it reads `+pid` and `-pid` lines, and when the pipe ends it kills the
 * process groups still listed. Chosen over a death signal set at spawn (Linux only, needs setpriv, misses the
 * worker's own children) and over a watching thread in each worker (10 MB each, Node only).
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';

const SHELL = '/bin/sh';

const SCRIPT = `
groups=
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

export class OrphanGuard {
  #shell: ChildProcess | null = null;
  readonly #groups = new Set<number>();
  readonly #onMissing: (why: string) => void;
  #closed = false;

  /** `onMissing` is told once if there is no shell to guard with. */
  constructor(onMissing: (why: string) => void) {
    this.#onMissing = onMissing;
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
    this.#shell?.stdin?.end();
  }

  #start(): void {
    if (!existsSync(SHELL)) {
      this.#onMissing(`${SHELL} is missing`);
      return;
    }
    // In a session of its own: a signal to our group or terminal must not end it first.
    const shell = spawn(SHELL, ['-c', SCRIPT, 'banana-serve-orphan-guard'], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
      env: {},
    });
    this.#shell = shell;
    shell.on('error', (error) => this.#onMissing(error.message));
    shell.on('exit', () => this.#replace(shell));
    shell.stdin.on('error', () => this.#replace(shell));
    shell.unref();
    (shell.stdin as unknown as { unref(): void }).unref();
    for (const pid of this.#groups) this.#tell(`+${pid}`);
  }

  /** Somebody killed the guard: post another. */
  #replace(shell: ChildProcess): void {
    if (this.#closed || this.#shell !== shell) return;
    this.#shell = null;
    this.#start();
  }

  #tell(line: string): void {
    this.#shell?.stdin?.write(`${line}\n`);
  }
}
