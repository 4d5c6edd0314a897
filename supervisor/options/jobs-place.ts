/** Reads `--jobs`: the store in which jobs are kept. */
import { NotAllowed } from './units.js';

/** `folder`: as given; relative paths begin in the folder of the server. */
export type JobsPlace = { readonly in: 'memory' } | { readonly in: 'local'; readonly folder: string };

export const IN_MEMORY: JobsPlace = { in: 'memory' };

const DEFAULT_FOLDER = '.banana-jobs';

/** @throws NotAllowed */
export function parseJobsPlace(raw: unknown): JobsPlace {
  const text = typeof raw === 'string' ? raw.trim() : '';
  if (text === 'memory') return IN_MEMORY;
  if (text === 'local') return { in: 'local', folder: DEFAULT_FOLDER };
  const folder = text.startsWith('local:') ? text.slice('local:'.length).trim() : '';
  if (folder !== '') return { in: 'local', folder };
  throw new NotAllowed('memory, local, or local: and the path of a folder');
}
