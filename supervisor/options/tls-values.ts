/** Checks the values of the TLS options. */
import { NotAllowed } from './units.js';

export const TLS_LISTENERS = ['main', 'management', 'metrics'] as const;
export type TlsListener = (typeof TLS_LISTENERS)[number];

/** Reads names of listeners from a comma-separated text or an array; the array may be empty. @throws NotAllowed */
export function parseTlsListeners(raw: unknown): readonly TlsListener[] {
  const given: readonly unknown[] = typeof raw === 'string' ? raw.split(',') : Array.isArray(raw) ? raw : [];
  const names = given.map((one) => (typeof one === 'string' ? one.trim() : ''));
  const known: readonly string[] = TLS_LISTENERS;
  if ((names.length === 0 && !Array.isArray(raw)) || !names.every((name) => known.includes(name)))
    throw new NotAllowed(`one or several of ${TLS_LISTENERS.join(', ')}, separated by commas`);
  return names as TlsListener[];
}

/** @throws NotAllowed */
export function parsePemPath(raw: unknown): string {
  if (typeof raw !== 'string' || raw.trim() === '') throw new NotAllowed('the path of a PEM file');
  return raw;
}
