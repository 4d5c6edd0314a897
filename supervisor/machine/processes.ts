/**
 * Other processes and their groups: their memory, whether they live or are frozen, their start, and signals to them. Mostly
 * Linux. And the programs that they run.
 */
import { readFileSync, readlinkSync, existsSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

/** Sends a signal to the group of a process that was started `detached`. A group that has ended is not an error. */
export function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    // EPERM: only zombies are left in the group (macOS), or it runs as another user now. Neither can be mended here, and
    // the server must not fail because of it.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}

/** The kernel's `PF_EXITING`, among the flags in `/proc/<pid>/stat`; a thread has it before its files are closed. */
const EXITING = 0x4;

/** Positions among the fields behind the name of the program. */
const STATE = 0;
const GROUP = 2;
const FLAGS = 6;
const START = 19;

/**
 * Whether the kernel is ending the process, which takes time if the machine is busy or the process has much memory; false
 * if unknown.
 */
export function isEnding(pid: number): boolean {
  const fields = readStat(pid);
  if (fields === undefined) return false;
  return fields === null || isDead(fields) || (Number(fields[FLAGS]) & EXITING) !== 0;
}

/** Whether a signal has stopped the process (SIGSTOP), until another one lets it continue; false if unknown. */
export function isFrozen(pid: number): boolean {
  return readStat(pid)?.[STATE] === 'T';
}

/**
 * Start time in the kernel's ticks since boot. Null if there is no such process. Undefined if its entry in /proc cannot be
 * read.
 */
export function startOf(pid: number): string | null | undefined {
  const fields = readStat(pid);
  return fields && (isDead(fields) ? null : fields[START]);
}

/** Null if there is no such process. Undefined if its entry in /proc cannot be read, as on other systems than Linux. */
function readStat(pid: number): string[] | null | undefined {
  try {
    return fieldsOf(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch (thrown) {
    if (process.platform !== 'linux') return undefined;
    const { code } = thrown as NodeJS.ErrnoException;
    return code === 'ENOENT' || code === 'ESRCH' ? null : undefined;
  }
}

/** The fields behind the name of the program, in parentheses, which may contain anything. */
function fieldsOf(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function isDead(fields: readonly string[]): boolean {
  return fields[STATE] === 'Z' || fields[STATE] === 'X';
}

/** Whether there is a process of this number, of any user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Identifies the pid namespace of this process on this boot of the machine; `0` if unknown. */
export function processNamespace(): string {
  try {
    const space = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '';
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').replace(/[^\da-f]/g, '');
    return `${space}x${boot}`;
  } catch {
    return '0';
  }
}

/** Resident bytes; 0 on systems without /proc; null if the process is dead, even before its exit is reported. */
export function residentBytes(pid: number): number | null {
  if (process.platform !== 'linux') return 0;
  try {
    return kibOf(readFileSync(`/proc/${pid}/status`, 'utf8'), 'VmRSS') || null; // a zombie has no VmRSS
  } catch {
    return null;
  }
}

export interface GroupMemory {
  /** Its share of the memory of the machine: what it shares with others counts in part. */
  readonly pssBytes: number;
  /** Memory that it shares with no other process. */
  readonly privateBytes: number;
}

const NOTHING: GroupMemory = { pssBytes: 0, privateBytes: 0 };

/**
 * Reads the memory of these groups, in libuv's thread pool: for a process of 3 GB the kernel takes 32 to 42 ms, which would
 * stop the event loop. Linux only. A group that has ended is left out. A group has the id of its leader.
 */
export async function readGroupMemory(groups: ReadonlySet<number>): Promise<Map<number, GroupMemory>> {
  const found = new Map<number, GroupMemory>();
  for (const name of await readdir('/proc')) {
    const pid = Number(name);
    if (Number.isNaN(pid)) continue;
    const group = await readGroup(pid);
    if (group === null || !groups.has(group)) continue;
    const memory = await readMemory(pid);
    if (memory === null) continue;
    const { pssBytes, privateBytes } = found.get(group) ?? NOTHING;
    found.set(group, {
      pssBytes: pssBytes + memory.pssBytes,
      privateBytes: privateBytes + memory.privateBytes,
    });
  }
  return found;
}

/** The group of a process; null if it has ended. */
export async function readGroup(pid: number): Promise<number | null> {
  const stat = await readOrNull(`/proc/${pid}/stat`);
  return stat === null ? null : Number(fieldsOf(stat)[GROUP]);
}

/** Null if the process has ended. */
async function readMemory(pid: number): Promise<GroupMemory | null> {
  const rollup = await readOrNull(`/proc/${pid}/smaps_rollup`);
  if (rollup !== null && rollup !== '') {
    const privateBytes = kibOf(rollup, 'Private_Clean') + kibOf(rollup, 'Private_Dirty');
    return { pssBytes: kibOf(rollup, 'Pss'), privateBytes };
  }
  // A process that may not be read so (it has changed its user) shows its resident memory.
  const status = await readOrNull(`/proc/${pid}/status`);
  if (status === null) return null;
  return { pssBytes: kibOf(status, 'VmRSS'), privateBytes: kibOf(status, 'RssAnon') };
}

async function readOrNull(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'latin1');
  } catch {
    return null; // it has ended, or may not be read
  }
}

function kibOf(text: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0) * 1024;
}

/** Looks for a program as a shell does: the path of that of this name in the first folder of PATH that has it; null if none has. */
export function findInPath(name: string, { PATH = '' }: NodeJS.ProcessEnv): string | null {
  const folders = PATH.split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? null;
}
