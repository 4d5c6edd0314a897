/**
 * Reads from the kernel how many bytes of a TCP connection its other side has not acknowledged yet. Only the kernel
 * knows: it takes megabytes from us at once and then nothing for as long as a slow reader needs for them (1.5 MB at a
 * time over loopback, Linux 6), so the pace of our writes says little about the reader. Linux only; elsewhere nothing
 * is known.
 */
import { readlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

/** Unacknowledged bytes by the inode of the connection's socket; 0 for a socket that is missing. */
export type KernelQueues = ReadonlyMap<string, number>;

/** Takes 10 us per connection of the machine, on another thread. Null where the system does not provide this. */
export async function readKernelQueues(): Promise<KernelQueues | null> {
  if (process.platform !== 'linux') return null;
  const queues = new Map<string, number>();
  for (const table of ['tcp', 'tcp6']) {
    const text = await readFile(`/proc/self/net/${table}`, 'latin1').catch(() => null);
    if (text === null && table === 'tcp') return null;
    addQueues(queues, text ?? '');
  }
  return queues;
}

/** Returns the inode of an open socket; null where the system does not provide it. */
export function inodeOf(fd: number): string | null {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1] ?? null;
  } catch {
    return null; // another system, or a sandbox without /proc
  }
}

/**
 * Adds the queues of a table to `queues`. A line is `sl local remote state tx_queue:rx_queue timer:when retransmits uid
 * timeout inode …`, with sizes in hexadecimal.
 */
export function addQueues(queues: Map<string, number>, table: string): void {
  for (const [, queued = '', inode = ''] of table.matchAll(LINE))
    if (queued !== '00000000') queues.set(inode, parseInt(queued, 16));
}

const LINE =
  /^ *\d+: [\dA-F]+:[\dA-F]{4} [\dA-F]+:[\dA-F]{4} [\dA-F]{2} ([\dA-F]{8}):[\dA-F]{8} \S+ \S+ +\d+ +\d+ (\d+)/gm;
