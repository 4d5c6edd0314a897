/**
 * Starts one worker process: frames on fd 3 (from it) and fd 4 (to it), its begun note on fd 5, stdout and stderr piped,
 * stdin empty. With Node's own spawn, not execa: a worker needs none of execa's buffering, results and clean-up, and loading
 * it would cost 150 ms of the 500 ms that a server needs to its first answer. Programs whose result is awaited are run by
 * execa (nvidia-smi.ts).
 *
 * The worker leads its own process group: a terminal's Ctrl-C reaches only the front, and the group dies as a whole.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, fstatSync, openSync, readSync, unlinkSync, writeFile, writeSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import {
  BEGUN_NOTE_BYTES,
  begunNoteBytes,
  decodeBegunNote,
  type BegunNote,
} from '../../protocol/wire/begun-note.js';
import { lighten } from '../../protocol/wire/light-socket.js';
import { loose } from '../machine/guest.js';
import { isEnding, isFrozen, killGroup } from '../machine/processes.js';
import { inheritedEnv } from '../options/environment.js';
import type { Exit } from './worker-death.js';

/** Makes the kernel pick a worker before the front when memory runs out (0 is normal, 1000 is first). */
const OOM_SCORE_ADJ = '500';

export interface WorkerProcess {
  readonly pid: number;
  /** Paused: what comes before its reader calls `resume` waits in the kernel. */
  readonly framesIn: Readable;
  readonly framesOut: Writable;
  /** The note of which call has begun; the caller closes it. */
  readonly begun: BegunFile;
  /** Returns a sentence on where it hangs, if it has written that; else an empty string. */
  stuckAt(): string;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Whether the kernel is ending it; false where the system does not report that. */
  isEnding(): boolean;
  /** Whether a signal has stopped it; false where the system does not report that. */
  isFrozen(): boolean;
  /** Called once, when the process is gone. */
  onExit(callback: (exit: Exit) => void): void;
  /** Signals the whole group; no error if it is gone already. */
  kill(signal: 'SIGTERM' | 'SIGKILL'): void;
}

export interface SpawnOptions {
  /** Program and arguments. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Pattern of variables of this process that the worker does not get, in addition to the server's secrets. */
  readonly withheld: RegExp | null;
  /** Makes a sentence of the text that the worker wrote behind its note; by default the text is quoted. */
  readonly stuckAt?: (left: string) => string;
}

/** @throws Error if the program cannot be started at all */
export function spawnWorker(options: SpawnOptions): WorkerProcess {
  const begun = new BegunFile();
  let child: ChildProcess;
  try {
    child = spawnWith(options, begun.fd);
  } catch (thrown) {
    begun.close();
    throw thrown;
  }
  const pid = child.pid as number;
  raiseOomScore(pid);
  for (const handle of [child, ...child.stdio] as (Socket | null)[]) loose(handle);
  return {
    pid,
    framesIn: lighten(child.stdio[3] as Socket).pause(),
    framesOut: child.stdio[4] as Writable,
    begun,
    stuckAt: () => (options.stuckAt ?? quoted)(begun.readLeft()),
    stdout: child.stdout as Readable,
    stderr: child.stderr as Readable,
    isEnding: () => isEnding(pid),
    isFrozen: () => isFrozen(pid),
    onExit: (callback) => child.once('exit', (code, signal) => callback({ code, signal })),
    kill: (signal) => killGroup(pid, signal),
  };
}

/** @throws Error if the program cannot be started at all */
function spawnWith(options: SpawnOptions, noteFd: number): ChildProcess {
  const [file = '', ...args] = options.command;
  const child = spawn(file, args, {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe', noteFd],
    detached: true,
    env: environmentOf(options),
  });
  child.on('error', () => {}); // a missing pid says the same, at once
  if (child.pid === undefined) throw new Error(`cannot start ${file}: is it installed and executable?`);
  return child;
}

/** The whole environment of the process. */
export function environmentOf({ withheld, env }: SpawnOptions): NodeJS.ProcessEnv {
  return { ...inheritedEnv(withheld), ...env };
}

function quoted(left: string): string {
  return left === '' ? '' : `Its last message: ${left.trim()}`;
}

function raiseOomScore(pid: number): void {
  if (process.platform !== 'linux') return;
  // Best effort: the process may be gone, or the file read-only; neither matters.
  writeFile(`/proc/${pid}/oom_score_adj`, OOM_SCORE_ADJ, () => {});
}

/** Linux keeps its files in memory; containers have it even if their file system is read-only. */
const MEMORY_FOLDER = '/dev/shm';

/** Longest text that is read: a worker could write any amount. */
const MAX_LEFT_BYTES = 64 * 1024;

/** The file of a worker's begun note (protocol/wire/begun-note.ts): it has no name, and is in RAM where the system has such files. */
export class BegunFile {
  /** The descriptor that the worker inherits. */
  readonly fd: number;
  #bytes = Buffer.alloc(BEGUN_NOTE_BYTES);

  /** Creates the file in the first of the folders in which that succeeds. @throws Error if all fail */
  constructor(folders: readonly string[] = [MEMORY_FOLDER, tmpdir()]) {
    this.fd = openNameless(`banana-serve-${process.pid}-${randomUUID()}`, folders);
  }

  /** The worker keeps entries for so many calls behind its note, if there are more than one. */
  set concurrency(calls: number) {
    this.#bytes = Buffer.alloc(begunNoteBytes(calls));
  }

  read(): BegunNote {
    readSync(this.fd, this.#bytes, 0, this.#bytes.length, 0);
    return decodeBegunNote(this.#bytes);
  }

  /** Reads the text that the worker wrote behind its note, or the end of it if it is long. */
  readLeft(): string {
    const endsAt = fstatSync(this.fd).size;
    const beginsAt = Math.max(BEGUN_NOTE_BYTES, endsAt - MAX_LEFT_BYTES);
    const bytes = Buffer.alloc(Math.max(0, endsAt - beginsAt));
    const read = readSync(this.fd, bytes, 0, bytes.length, beginsAt);
    return bytes.toString('utf8', 0, read);
  }

  /** Closes this process's descriptor; the worker's stays open. */
  close(): void {
    closeSync(this.fd);
  }
}

function openNameless(name: string, [folder = '', ...others]: readonly string[]): number {
  try {
    return openIn(folder, name);
  } catch (thrown) {
    if (others.length === 0) throw thrown;
    return openNameless(name, others);
  }
}

function openIn(folder: string, name: string): number {
  const path = join(folder, name);
  const fd = openSync(path, 'wx+', 0o600);
  try {
    unlinkSync(path);
    writeSync(fd, Buffer.alloc(BEGUN_NOTE_BYTES)); // reserves the space: no note can fail on a full disk later
    return fd;
  } catch (thrown) {
    closeSync(fd);
    throw thrown;
  }
}
