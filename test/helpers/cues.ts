/** The test's side of `fixtures/apps/lib/cues.mjs`: a folder in which an app leaves notes and waits for cues. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { eventually } from './server.js';

export interface Cues {
  readonly folder: string;
  /** Variables that the app needs in its environment. */
  readonly env: Readonly<Record<string, string>>;
  give(cue: string): void;
  /** Lines noted so far, over all workers. */
  readonly notes: () => string[];
  /** Resolves once a line is noted; rejects after `limitMs`. */
  untilNoted(line: string | RegExp, limitMs?: number): Promise<void>;
}

/** Removed when the test ends. */
export function makeCues(t: TestContext): Cues {
  const folder = mkdtempSync(join(tmpdir(), 'banana-cues-'));
  writeFileSync(join(folder, 'notes'), '');
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const notes = (): string[] => readFileSync(join(folder, 'notes'), 'utf8').split('\n').slice(0, -1);
  return {
    folder,
    env: { CUES: folder },
    give: (cue) => writeFileSync(join(folder, cue), ''),
    notes,
    untilNoted: (line, limitMs = 30_000) =>
      eventually(
        () => notes().some((noted) => (typeof line === 'string' ? noted === line : line.test(noted))),
        limitMs,
        () => `waiting for the note ${String(line)} among:\n${notes().join('\n')}`,
      ),
  };
}
