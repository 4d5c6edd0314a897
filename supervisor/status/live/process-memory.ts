/** Reads the memory of processes while the page has viewers: some in each second, because every read is a file of the system. */

/** A read takes some 20 us. */
const READS_PER_SECOND = 64;

export class ProcessMemory {
  readonly #read: (pid: number) => number | null;
  #bytes = new Map<number, number | null>();
  /** Number of the process, in the order of the list, at which the next second begins. */
  #next = 0;

  /** `read`: returns the resident bytes of a process; null if it is dead. */
  constructor(read: (pid: number) => number | null) {
    this.#read = read;
  }

  /** Reads some of these processes; the others keep their figures, and all others lose them. */
  update(pids: readonly number[]): void {
    const watched = new Set(pids);
    this.#bytes = new Map([...this.#bytes].filter(([pid]) => watched.has(pid)));
    const count = Math.min(READS_PER_SECOND, pids.length);
    for (let i = 0; i < count; i += 1) {
      const pid = pids[(this.#next + i) % pids.length] as number;
      this.#bytes.set(pid, this.#read(pid));
    }
    this.#next += count;
  }

  /** The sum of these processes; null until each of them was read, and without one. */
  sumOf(pids: readonly number[]): number | null {
    if (pids.length === 0 || !pids.every((pid) => this.#bytes.has(pid))) return null;
    return pids.reduce((sum, pid) => sum + (this.#bytes.get(pid) ?? 0), 0);
  }
}
