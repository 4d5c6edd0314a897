/** Reads the header `Server-Timing` of an answer. */

export interface ServerTimes {
  /** Null if the header does not say. */
  readonly queueMs: number | null;
  readonly runMs: number | null;
}

/** An app's own entries may stand before the server's, so the last of a name counts. */
export function serverTimes(header: string | null): ServerTimes {
  const times: Record<string, number> = {};
  for (const entry of (header ?? '').split(',')) {
    const [, name, ms] = /^\s*([\w-]+)\s*;.*\bdur=([\d.]+)/.exec(entry) ?? [];
    if (name !== undefined) times[name] = Number(ms);
  }
  return { queueMs: times['queue'] ?? null, runMs: times['run'] ?? null };
}
