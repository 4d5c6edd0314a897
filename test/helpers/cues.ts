/** The test's side of `fixtures/apps/lib/cues.mjs`: a folder in which an app leaves notes and waits for cues. */
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
  /** Takes all cues and notes back, for the next test with the same server. */
  forget(): void;
}

/** A test, or `node:test` for the group of tests whose definition is running. */
export interface Ending {
  after(then: () => void): void;
}

/** Removed when the test ends, or the group of tests. */
export function makeCues(t: Ending): Cues {
  const folder = mkdtempSync(join(tmpdir(), 'banana-cues-'));
  const forget = (): void => {
    for (const name of readdirSync(folder)) rmSync(join(folder, name));
    writeFileSync(join(folder, 'notes'), '');
  };
  forget();
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 })); // a worker may still note its end
  const notes = (): string[] => readFileSync(join(folder, 'notes'), 'utf8').split('\n').slice(0, -1);
  return {
    folder,
    env: { CUES: folder },
    give: (cue) => writeFileSync(join(folder, cue), ''),
    notes,
    untilNoted: (line, limitMs = 90_000) =>
      eventually(
        () => notes().some((noted) => (typeof line === 'string' ? noted === line : line.test(noted))),
        limitMs,
        () => `waiting for the note ${String(line)} among:\n${notes().join('\n')}`,
      ),
    forget,
  };
}
