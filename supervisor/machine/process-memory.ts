/** Reads the memory use of other processes, and of process groups. */
import { readFileSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';

/** Resident bytes; 0 on systems without /proc; null if the process is dead, even before its exit is reported. */
export function residentBytes(pid: number): number | null {
  if (process.platform !== 'linux') return 0;
  try {
    const kib = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kib === undefined ? null : Number(kib) * 1024; // a zombie has no VmRSS
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
  for (const pid of await processes()) {
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
  // The name of the program, in parentheses, may contain anything.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields?.[2] === undefined ? null : Number(fields[2]);
}

async function processes(): Promise<number[]> {
  return (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
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
