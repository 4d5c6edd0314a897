/** Reads `--jobs`: the store in which jobs are kept. */
import { NotAllowed } from './units.js';

/** `folder`: as given; relative paths begin in the folder of the server. */
export type JobsPlace =
  | { readonly in: 'memory' }
  | { readonly in: 'local'; readonly folder: string }
  | { readonly in: 'redis'; readonly url: string };

export const IN_MEMORY: JobsPlace = { in: 'memory' };

const DEFAULT_FOLDER = '.banana-jobs';

/** @throws NotAllowed */
export function parseJobsPlace(raw: unknown): JobsPlace {
  const text = typeof raw === 'string' ? raw.trim() : '';
  if (text === 'memory') return IN_MEMORY;
  if (text === 'local') return { in: 'local', folder: DEFAULT_FOLDER };
  const folder = text.startsWith('local:') ? text.slice('local:'.length).trim() : '';
  if (folder !== '') return { in: 'local', folder };
  if (isRedisUrl(text)) return { in: 'redis', url: text };
  throw new NotAllowed('memory, local, local: and the path of a folder, or redis://host:port of one Redis');
}

/** A password may have any character in its %-form. */
function isRedisUrl(text: string): boolean {
  if (!/^rediss?:\/\//.test(text) || !URL.canParse(text)) return false;
  const { hostname, pathname, search, hash } = new URL(text);
  return hostname !== '' && /^\/?\d{0,4}$/.test(pathname) && search === '' && hash === '';
}
